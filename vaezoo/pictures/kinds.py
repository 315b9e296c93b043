"""Every kind of figure that checkpoints can be drawn as, by its name."""

from collections.abc import Callable, Sequence
from typing import Literal

from jsonargparse import Namespace

from vaezoo.models import LaRVAE, PartedVAE
from vaezoo.pictures import callback, inferred, mixtures, walks
from vaezoo.pictures.classes import class_samples, transfers
from vaezoo.pictures.codes import SaveUnitNats
from vaezoo.pictures.labels import label_traversals
from vaezoo.pictures.matrices import code_matrices
from vaezoo.pictures.picture import Figures, Picture, stack
from vaezoo.pictures.positions import POINTS, VARIANTS, DrawsPositions, position_pictures
from vaezoo.pictures.subjects import Subject
from vaezoo.runs.checkpoint_io import read_checkpoint

LABEL_STEPS = 5  # Nie et al., 2020, Fig. 4
ACROSS = 8  # images of a row of samples
Kind = Literal[
    "units",
    "ranked",
    "starts",
    "classes",
    "factor",
    "quantiles",
    "between",
    "priors",
    "labels",
    "positions",
    "reconstructions",
    "samples",
    "class_samples",
    "transfers",
    "matrices",
    "nats",
]
IMAGES: dict[Kind, int] = {"reconstructions": 8, "transfers": 8}
"""How many images kinds start from by default, where it is not one."""
LISTED = """\
kinds of figures:
  units      each start × the units of each group, with animations and strips
  ranked     units of all groups by their KL over --pool images, nats printed (JointVAE Fig. 8)
  starts     several images, or --draws from the --prior, × one unit (JointVAE Fig. 3; DIP-VAE Fig. 3 to 6)
  classes    classes × one continuous unit (JointVAE Fig. 5, 6)
  factor     a unit's value inferred from images along --factor (JointVAE Fig. 9a)
  quantiles  u by quantiles of each class's component, z in [-3, 3], one picture a class (PartedVAE Fig. 4, 9)
  between    u swept over the components of --classes A B (PartedVAE Fig. 6b)
  priors     p(u) of every unit with images along it, all checkpoints in one plot (PartedVAE Fig. 7, 10)
  labels     labels from least to greatest, checkpoints stacked (LaRVAE Fig. 4, E.3, E.4)
  positions  codes over positions on a scale of -3 to 3, and the map of the labels (WeLa-VAE Fig. 1, 3b, 4, 5)
as drawn in training:
  reconstructions, samples, class_samples, transfers; matrices (covariance, information, importance; --pool images);
  nats       the KL of each unit over the training, of runs with SaveUnitNats (JointVAE Fig. 7)
"""


def labels(subjects: Sequence[Subject], options: Namespace) -> Figures:
    """Labels of random images from least to greatest, models stacked (Nie et al., 2020, Fig. 4, E.3, E.4)."""
    models: dict[str, LaRVAE] = {}
    for subject in subjects:
        if not isinstance(subject.model, LaRVAE):
            name = type(subject.model).__name__
            raise ValueError(f"kind labels needs LaRVAE checkpoints, and {subject.path} holds a {name}")
        label = subject.label if subject.label not in models else f"{subject.label} {len(models) + 1}"
        models[label] = subject.model
    data, size = subjects[0].data, next(iter(models.values())).label_dim
    if any(model.label_dim != size for model in models.values()):
        raise ValueError("kind labels: the checkpoints have different numbers of labels")
    if outside := [unit for unit in options.units or () if not 0 <= unit < size]:
        raise ValueError(f"there are labels 0 to {size - 1}, not {outside[0]}")
    figures: Figures = {}
    for i, (batch, _) in zip(options.image_indices, subjects[0].images(options), strict=True):
        if batch.y.shape[1] != size or bool(batch.y.isnan().any()):
            raise ValueError(f"--image_indices {i}: the model has {size} labels, and not all of this image are known")
        title = f"{', '.join(models)} · labels of image{i}"
        steps = options.steps or LABEL_STEPS
        figures[f"labels_image{i}"] = label_traversals(models, batch, data, steps, title, options.units or ())
    return figures


def positions(subject: Subject, options: Namespace) -> Figures:
    """Codes over positions, and the map of the labels (Margonis et al., 2020, Fig. 1, 3b, 4 and 5)."""
    data, found = subject.data, {}
    if isinstance(data, DrawsPositions):
        found = position_pictures(subject.model, data, options.steps or POINTS, VARIANTS, subject.title)
    if not found:
        raise ValueError(f"kind positions needs data with positions, and {type(data).__name__} has none")
    return {**found}


def reconstructions(subject: Subject, options: Namespace) -> Figures:
    """Images above and their reconstructions below."""
    return {"reconstructions": callback.reconstructions(subject.model, subject.batch(options), subject.title)}


def samples(subject: Subject, options: Namespace) -> Figures:
    """Samples of the prior."""
    return {"samples": callback.samples(subject.model, ACROSS, subject.title)}


def samples_of_classes(subject: Subject, options: Namespace) -> Figures:
    """Samples of each class, `--draws` each (Dupont, 2018, Fig. 4)."""
    found = class_samples(subject.model, options.draws, subject.title)
    if not found:
        name = type(subject.model).__name__
        raise ValueError(f"kind class_samples needs a JointVAE or PartedVAE, and {subject.path} holds a {name}")
    return {**found}


def attribute_transfers(subject: Subject, options: Namespace) -> Figures:
    """The class of each row's image with all else from each column's (Hajimiri et al., 2021, Fig. 5)."""
    if not isinstance(subject.model, PartedVAE):
        raise ValueError(f"kind transfers needs a PartedVAE, and {subject.path} holds a {type(subject.model).__name__}")
    return {**transfers(subject.model, subject.batch(options), subject.title)}


def matrices(subject: Subject, options: Namespace) -> Figures:
    """Covariance of the codes, and what each latent tells of each factor."""
    return {**code_matrices(subject.model, subject.data, options.pool, options.seed, subject.title)}


def nats(subject: Subject, options: Namespace) -> Figures:
    """KL of each unit over the training, as `SaveUnitNats` has measured it (Dupont, 2018, Fig. 7)."""
    measured = SaveUnitNats()
    state = (read_checkpoint(subject.path).get("callbacks") or {}).get(measured.state_key)
    if state is None:
        raise ValueError(f"kind nats needs a run with the callback SaveUnitNats, and {subject.path} has none of it")
    measured.load_state_dict(state)
    return {**measured.pictures(subject.title)}


def stacked(draw: Callable[[Subject, Namespace], Figures]) -> Callable[[Sequence[Subject], Namespace], Figures]:
    """Draw each checkpoint by itself; figures of the same name go below each other."""

    def together(subjects: Sequence[Subject], options: Namespace) -> Figures:
        found = [draw(subject, options) for subject in subjects]
        if len(found) == 1:
            return found[0]
        below: dict[str, list[Picture]] = {}
        for name, figure in (item for figures in found for item in figures.items()):
            if isinstance(figure, Picture):  # animations of different models do not go together
                below.setdefault(name, []).append(figure)
        return {name: stack(pictures) for name, pictures in below.items()}

    return together


KINDS: dict[Kind, Callable[[Sequence[Subject], Namespace], Figures]] = {
    "units": stacked(walks.units),
    "ranked": stacked(walks.ranked),
    "starts": stacked(walks.starts),
    "classes": stacked(walks.classes),
    "factor": stacked(inferred.factor),
    "quantiles": stacked(mixtures.quantiles),
    "between": stacked(mixtures.between),
    "priors": mixtures.priors,
    "labels": labels,
    "positions": stacked(positions),
    "reconstructions": stacked(reconstructions),
    "samples": stacked(samples),
    "class_samples": stacked(samples_of_classes),
    "transfers": stacked(attribute_transfers),
    "matrices": stacked(matrices),
    "nats": stacked(nats),
}
