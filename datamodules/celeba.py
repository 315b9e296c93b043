"""CelebA: faces with 40 binary attributes, or with the eight discrete variables that PartedVAE makes of them."""

from functools import cached_property
from typing import Any, Literal

import torch
from PIL import Image
from torch import Tensor
from torchvision.datasets import CelebA

from datamodules.base import ImageDataModule
from datamodules.factors import Factor, LabelForm
from datamodules.pictures import cached_pictures, centre, resize
from datamodules.sources import MemoryMapped

HEIGHT, WIDTH = 218, 178
ATTRIBUTES = (  # noqa: SIM905 - a list would take forty lines
    "5_o_Clock_Shadow Arched_Eyebrows Attractive Bags_Under_Eyes Bald Bangs Big_Lips Big_Nose Black_Hair Blond_Hair "
    "Blurry Brown_Hair Bushy_Eyebrows Chubby Double_Chin Eyeglasses Goatee Gray_Hair Heavy_Makeup High_Cheekbones Male "
    "Mouth_Slightly_Open Mustache Narrow_Eyes No_Beard Oval_Face Pale_Skin Pointy_Nose Receding_Hairline Rosy_Cheeks "
    "Sideburns Smiling Straight_Hair Wavy_Hair Wearing_Earrings Wearing_Hat Wearing_Lipstick Wearing_Necklace "
    "Wearing_Necktie Young"
).split()


class CelebADataModule(ImageDataModule):
    """CelebA (Liu et al., 2015): 202,599 aligned faces in the official split of 162,770 / 19,867 / 19,962.

    Files are torchvision's, in `data_dir/celeba`. A cache is made for each preparation, of 2.5 GB at 64×64.

    Args:
        crop: Side of the square that is kept about the centre; None keeps the whole 218×178.
        image_size: Side, or height and width, to which pictures are resized bilinearly; None leaves them as they are.
        download: Let torchvision fetch missing files, which needs the package gdown.
        label_form: As in `ImageDataModule`.
        options: As in `ImageDataModule`.
    """

    factors = tuple(Factor(name, 2, "categorical") for name in ATTRIBUTES)
    source = "file"

    def __init__(
        self,
        crop: int | None = 148,
        image_size: int | tuple[int, int] | None = 64,
        download: bool = False,
        label_form: LabelForm = "index",
        **options: Any,
    ) -> None:
        if crop is not None and not 1 <= crop <= WIDTH:
            raise ValueError(f"crop must lie in 1..{WIDTH} or be None, not {crop}")
        self.cropped = (HEIGHT, WIDTH) if crop is None else (crop, crop)
        height, width = self.cropped
        if image_size is not None:
            height, width = (image_size, image_size) if isinstance(image_size, int) else image_size
        if min(height, width) < 1:
            raise ValueError(f"image_size must be at least 1, not {image_size}")
        super().__init__(label_form=label_form, val_size=0, test_size=0, **options)
        self.image_shape = (3, height, width)
        self.download = download

    def open(self) -> MemoryMapped:
        """The cache of the pictures."""
        sizes = "-".join(f"{height}x{width}" for height, width in (self.cropped, self.image_shape[1:]))
        cache = self.data_dir / ".cache" / f"celeba-{sizes}"
        folder = self.data_dir / "celeba" / "img_align_celeba"
        return cached_pictures(cache, folder, self._records.filename, self.image_shape, self._prepare)

    def factors_of(self, ids: Tensor) -> Tensor:
        """Attributes of images by id, 0 or 1, (B, 40)."""
        attributes: Tensor = self._records.attr
        return attributes[ids]

    def split_ids(self) -> tuple[Tensor, Tensor, Tensor]:
        """Ids of the official training, validation and test images."""
        lines = (self.data_dir / "celeba" / "list_eval_partition.txt").read_text().splitlines()
        parts = torch.tensor([int(line.split()[1]) for line in lines])
        train, val, test = ((parts == part).nonzero().flatten() for part in range(3))
        return train, val, test

    def _prepare(self, picture: Image.Image) -> Image.Image:
        if picture.size != (WIDTH, HEIGHT):
            raise ValueError(f"{picture.width}×{picture.height} pixels, not {WIDTH}×{HEIGHT}")
        return resize(centre(picture.convert("RGB"), *self.cropped), self.image_shape)

    @cached_property
    def _records(self) -> CelebA:
        folder = self.data_dir / "celeba"
        try:
            records = CelebA(self.data_dir, split="all", target_type="attr", download=self.download)
        except Exception as error:  # torchvision, gdown and zipfile have no kind in common
            raise FileNotFoundError(
                f"CelebA cannot be read from {folder} ({error}): fetch img_align_celeba.zip and the five lists from "
                "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html, unpack the pictures, and put all of them there"
            ) from error
        if records.attr_names[: len(ATTRIBUTES)] != ATTRIBUTES or len(records.attr) != len(records.filename):
            raise ValueError(f"{folder} holds lists that do not give 40 attributes for every picture: fetch them again")
        return records


class CelebAClassesDataModule(CelebADataModule):
    """CelebA with PartedVAE's eight variables instead of the attributes (Hajimiri et al., 2021, App. B).

    The authors labelled 800 faces by hand and published neither the labels nor their names. Here classes follow from
    the attributes, in an order that agrees with the shares in the released code: hair black, brown, blond or grey (not
    known unless exactly one holds); skin tone 2 where pale (not known elsewhere, as no attribute tells); beard none,
    5 o'clock shadow, or more than that. A label that is not known is NaN, a factor -1.

    Args:
        label_form: "index" gives class indices, "rank" scales them to [0, 1].
        options: As in `CelebADataModule`.
    """

    factors = (
        Factor("hair_colour", 4, "categorical"),
        Factor("skin_tone", 3, "categorical"),
        Factor("bangs", 2, "categorical"),
        Factor("beard", 3),
        Factor("receding_hairline", 2, "categorical"),
        Factor("smiling", 2, "categorical"),
        Factor("eyeglasses", 2, "categorical"),
        Factor("male", 2, "categorical"),
    )

    def __init__(self, label_form: Literal["index", "rank"] = "index", **options: Any) -> None:
        super().__init__(label_form=label_form, **options)

    def factors_of(self, ids: Tensor) -> Tensor:
        """Classes of images by id, -1 where not known, (B, 8)."""
        attributes = dict(zip(ATTRIBUTES, super().factors_of(ids).unbind(1), strict=True))
        colours = torch.stack([attributes[f"{name}_Hair"] for name in ("Black", "Brown", "Blond", "Gray")], 1)
        hair = torch.where(colours.sum(1) == 1, colours.argmax(1), -1)
        skin = torch.where(attributes["Pale_Skin"] == 1, 2, -1)
        shadow = attributes["5_o_Clock_Shadow"] == 1
        beard = torch.where(shadow, 1, 2 * (1 - attributes["No_Beard"]))
        plain = [attributes[name] for name in ("Receding_Hairline", "Smiling", "Eyeglasses", "Male")]
        return torch.stack([hair, skin, attributes["Bangs"], beard, *plain], dim=1)

    def labels_of(self, ids: Tensor) -> Tensor:
        """Labels of images by id, NaN where not known, (B, label_size)."""
        labels = super().labels_of(ids)
        return labels.masked_fill(labels < 0, torch.nan)

    def cells_of(self, ids: Tensor) -> Tensor:
        """One cell: labels come at random, as balance over all combinations would prefer the rarest."""
        return torch.zeros_like(ids)
