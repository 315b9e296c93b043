"""What a page does, without the page: from starts and values of controls to codes, pictures and neighbours."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from vaezoo.explorer.controls import Codes, Control, codes_of, controls_of, values_of
from vaezoo.explorer.images import Images, in_batches
from vaezoo.explorer.starts import Neighbour, Start, Values
from vaezoo.functional import observed_labels
from vaezoo.models import WeLaVAE
from vaezoo.models.base import VAE
from vaezoo.pictures.subjects import FORMATS, read_picture
from vaezoo.types import Batch


class Explorer:
    """Models that are driven with the same codes.

    Args:
        models: Models by name; their latents and images must be alike. They are put into evaluation mode.
        images: Images to start from and to compare with; None leaves the prior and uploads.
    """

    def __init__(self, models: Mapping[str, VAE], images: Images | None = None) -> None:
        _require_alike(models)
        self.names, self.images = list(models), images
        self.models = [model.eval() for model in models.values()]
        self.latents = self.models[0].latents
        with torch.no_grad():
            self.controls: list[Control] = controls_of(self.models, images)
        self.training_codes = cache(self._training_codes)

    @property
    def parts(self) -> dict[str, str]:
        """What a transfer takes from another image, and what each is called.

        Groups of the code; labels one by one, as are units where there is but one group.
        """
        groups = list(self.models[0].decoded)
        found: dict[str, str] = {}
        for control in self.controls:
            alone = control.is_label or len(groups) == 1
            found |= {control.name: control.title} if alone else {control.moves: control.moves}
        return dict(sorted(found.items(), key=lambda part: groups.index(part[0]) if part[0] in groups else -1))

    @property
    def weak_labels(self) -> dict[str, int]:
        """Labels that the encoder reads beside the image, with their numbers of classes."""
        for model in self.models:
            if isinstance(model, WeLaVAE) and model.labels_in_encoder:
                return dict(zip(self.label_names(len(model.label_sizes)), model.label_sizes, strict=True))
        return {}

    def label_names(self, count: int) -> list[str]:
        """Names of labels that are encoded or decoded beside the image."""
        names = list(self.images.label_names) if self.images is not None else []
        return names if len(names) == count else [f"label {k}" for k in range(count)]

    @torch.no_grad()
    def middle(self, lead: int = 0) -> Start:
        """The middle of the prior of model `lead`."""
        return Start("middle of the prior", self._values(self.models[lead].centre()))

    @torch.no_grad()
    def draw(self, seed: int, lead: int = 0) -> Start:
        """A draw from the prior of model `lead`."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return Start("draw from the prior", self._values(self.models[lead].draw(1)))

    def image(self, index: int, lead: int = 0) -> Start:
        """An image of the data, by number.

        Raises:
            ValueError: There is no such image.
        """
        if self.images is None:
            raise ValueError("there is no data to take images from: give --data")
        images, count = self.images.starts, len(self.images.starts.batch.x)
        if not 0 <= index < count:
            raise ValueError(f"image {index}: there are {count}, 0 to {count - 1}")
        batch = images.batch.at(torch.tensor([index]))
        factors, name = self.images.factors_text(images, index), f"{self.images.kind} image {index}"
        return self.encoded(Start(name, (), batch.x, self._read_labels(batch), factors, index), lead)

    def upload(self, path: Path, lead: int = 0) -> Start:
        """A picture file of one's own, grey or RGB and resized as the models read it.

        Raises:
            ValueError: It cannot be read as a picture.
        """
        try:
            image = read_picture(path, self.models[lead].image_shape)
        except (FileNotFoundError, ValueError) as error:
            raise ValueError(f"{path.name} is no picture that can be read: give a {', '.join(FORMATS)} file") from error
        return self.encoded(Start(path.name, (), image, self._no_labels()), lead)

    @torch.no_grad()
    def encoded(self, start: Start, lead: int = 0) -> Start:
        """The same start, its image encoded by model `lead`; one without an image stays as it is."""
        if start.image is None:
            return start
        model = self.models[lead]
        labels = None if start.labels is None else start.labels.to(model.device)
        posterior = model.encode(start.image.to(model.device), labels)
        return replace(start, values=self._values({name: q.mode() for name, q in posterior.items()}))

    def relabelled(self, start: Start, classes: Sequence[int | None], lead: int = 0) -> Start:
        """The same start, encoded with other weak labels; None stands for an unknown one."""
        labels = torch.tensor([[torch.nan if k is None else float(k) for k in classes]])
        return self.encoded(replace(start, labels=labels), lead)

    def weak_classes(self, start: Start) -> list[int | None]:
        """Class of each weak label of a start, None where it is unknown: the opposite of `relabelled`."""
        sizes = list(self.weak_labels.values())
        if not sizes or start.labels is None:
            return [None] * len(sizes)
        labels, known = observed_labels(start.labels, sizes)
        classes = [int(label.argmax()) for label in labels.split(sizes, dim=1)]
        return [k if there else None for k, there in zip(classes, known[0].tolist(), strict=True)]

    @torch.no_grad()
    def chosen(self, values: Values, picker: int, lead: int = 0) -> Values:
        """Values after a picker has taken its class: PartedVAE moves "u" to the mean of the class in model `lead`."""
        control, codes = self.controls[picker], self._codes(values, lead)
        group, walked = self.models[lead].walk(codes, control.latent, control.number, torch.empty(0))
        return self._values({**codes, group: walked[:, int(values[picker])]})

    def transferred(self, a: Values, b: Values, parts: Collection[str]) -> Values:
        """Values of A, with these parts from B (Hajimiri et al., 2021, Fig. 5)."""
        trios = zip(self.controls, a, b, strict=True)
        return tuple(vb if control.moves in parts or control.name in parts else va for control, va, vb in trios)

    @torch.no_grad()
    def decoded(self, values: Values) -> list[tuple[Tensor, tuple[Tensor, ...]]]:
        """Of each model, the picture (C, H, W) in [0, 1] and the probabilities of each decoded label, (classes,)."""
        found = []
        for i, model in enumerate(self.models):
            image, labels = model.decode_with_labels(self._codes(values, i))
            found.append((image[0].sigmoid().cpu(), tuple(logits[0].softmax(0).cpu() for logits in labels)))
        return found

    @torch.no_grad()
    def walk(self, values: Values, unit: int, steps: int = 13) -> Tensor:
        """Pictures while one control goes from end to end, (models, S, C, H, W)."""
        control, rows = self.controls[unit], []
        low, high = control.reach(values[unit])
        moved = range(control.classes) if control.classes else torch.linspace(low, high, steps).tolist()
        for value in moved:
            now = (*values[:unit], value, *values[unit + 1 :])
            now = self.chosen(now, unit) if control.classes else now
            rows.append(torch.stack([image for image, _ in self.decoded(now)]))
        return torch.stack(rows, dim=1)

    @torch.no_grad()
    def nearest(self, values: Values, count: int = 5, lead: int = 0) -> list[Neighbour]:
        """Training images whose codes in model `lead` are nearest, the nearest first."""
        if self.images is None:
            return []
        model, known = self.models[lead], self.images.training
        distances = (self.training_codes(lead) - model.beside(self._codes(values, lead))).norm(dim=1).cpu()
        best = distances.topk(min(count, len(distances)), largest=False).indices.tolist()
        return [Neighbour(known.batch.x[i], float(distances[i]), self.images.factors_text(known, i)) for i in best]

    def _training_codes(self, lead: int) -> Tensor:
        """Codes of the training images, as they would be decoded, (N, D)."""
        model, codes = self.models[lead], []
        if self.images is None:
            raise ValueError("there is no data to compare with")
        for batch in in_batches(self.images.training.batch):
            labels = self._read_labels(batch)
            posterior = model.encode(batch.x.to(model.device), None if labels is None else labels.to(model.device))
            codes.append(model.beside({name: q.mode() for name, q in posterior.items()}))
        return torch.cat(codes)

    def _codes(self, values: Values, model: int) -> Codes:
        device = self.models[model].device
        return {name: code.to(device) for name, code in codes_of(self.controls, values, self.latents).items()}

    def _values(self, codes: Mapping[str, Tensor]) -> Values:
        return values_of(self.controls, codes, self.latents)

    def _read_labels(self, batch: Batch) -> Tensor | None:
        """Labels of images where the encoder reads them."""
        return batch.y if self.weak_labels else None

    def _no_labels(self) -> Tensor | None:
        return torch.full((1, len(self.weak_labels)), torch.nan) if self.weak_labels else None


def _require_alike(models: Mapping[str, VAE]) -> None:
    """Refuse models that cannot be driven with the same codes."""
    forms = {name: _form(model) for name, model in models.items()}
    (first, form), *others = forms.items()
    for name, other in others:
        if other != form:
            raise ValueError(
                f"{name} has {other}, and {first} has {form}: the same codes do not fit both; open them apart"
            )


def _form(model: VAE) -> str:
    groups = (
        f"{name} ({' × '.join(map(str, group.classes))} classes)" if group.classes else f"{name} ({group.size})"
        for name, group in ((name, model.latents[name]) for name in model.walkable())
    )
    return f"latents {', '.join(groups)} and images of {tuple(model.image_shape)}"
