"""CelebA: faces with 40 binary attributes, or with the eight discrete variables that PartedVAE makes of them."""

from functools import cached_property
from typing import Any, Literal

import torch
from PIL import Image
from torch import Tensor
from torchvision.datasets import CelebA

from datamodules.base import ImageDataModule, LabelledSet
from datamodules.factors import Factor, LabelForm
from datamodules.pictures import cached_pictures, centre, resize, sized
from datamodules.sources import MemoryMapped
from vaezoo.runs.files import require_own_file

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

    Uses torchvision's files in `data_dir/celeba`. Each preparation gets a cache, 2.5 GB at 64×64. The papers prepare it
    differently:

    - JointVAE's released code trains on every picture, the whole of it resized to 64×64: `crop=None`,
      `official_split=False`.
    - DIP-VAE crops to 64×64 and holds out a tenth: `official_split=False`, `test_size=0.1`.
    - PartedVAE's released code takes whole pictures of 218×178 and labels the first 800 for training: `crop=None`,
      `image_size=None`, `labels=800`, `labelled_set="first"`.

    Args:
        crop: Side of the centre crop. None keeps the whole 218×178.
        image_size: Side, or height and width; images are resized bilinearly. None keeps the size.
        download: Let torchvision download missing files; needs the package gdown.
        official_split: Use the published split. Otherwise `val_size` and `test_size` images are held out at random.
        val_size: As in `ImageDataModule`, without the official split.
        test_size: As in `ImageDataModule`, without the official split.
        label_form: As in `ImageDataModule`.
        labelled_set: As in `ImageDataModule`. Balancing over 2⁴⁰ cells would favour the rarest faces.
        options: As in `ImageDataModule`.
    """

    factors = tuple(Factor(name, 2, "categorical") for name in ATTRIBUTES)
    source = "file"

    def __init__(
        self,
        crop: int | None = 148,
        image_size: int | tuple[int, int] | None = 64,
        download: bool = False,
        official_split: bool = True,
        val_size: int | float = 0,
        test_size: int | float = 0,
        label_form: LabelForm = "index",
        labelled_set: LabelledSet = "random",
        **options: Any,
    ) -> None:
        if official_split and (val_size or test_size):
            raise ValueError("val_size and test_size are those of CelebA's official split: set official_split=False")
        if crop is not None and not 1 <= crop <= WIDTH:
            raise ValueError(f"crop must lie in 1..{WIDTH} or be None, not {crop}")
        self.cropped = (HEIGHT, WIDTH) if crop is None else (crop, crop)
        self.image_shape = sized(3, self.cropped if image_size is None else image_size)
        super().__init__(
            label_form=label_form, labelled_set=labelled_set, val_size=val_size, test_size=test_size, **options
        )
        self.download, self.official_split = download, official_split

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
        """Ids of the training, validation and test images."""
        if not self.official_split:
            return super().split_ids()
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
        for *_, name in CelebA.file_list:
            require_own_file(folder / name, folder)
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

    Variables and classes are in the order of the paper's captions and of the shares in its released code. That code
    reads 800 labels by the authors from a file that is not public; here they are derived from CelebA's attributes:

    - hair_colour (black, brown, blond, grey): `Black_Hair` … `Gray_Hair`; not known unless exactly one holds
    - skin_tone (white, brown, black): white if `Pale_Skin`; not known elsewhere, as no other attribute tells
    - beard (no, yes): not `No_Beard`
    - fringe (neither, bangs, receding hairline): `Bangs`, `Receding_Hairline`; not known if both hold
    - eyeglasses, smiling, hat (no, yes): `Eyeglasses`, `Smiling`, `Wearing_Hat`
    - gender (female, male): `Male`

    An unknown label is NaN, an unknown factor -1. Departs from the paper: the authors labelled skin tone by hand;
    without their labels, brown and black skin stay unlabelled.

    Args:
        label_form: "index" gives class indices, "rank" scales them to [0, 1].
        labelled_set: As in `CelebADataModule`; unknown classes cannot be balanced.
        options: As in `CelebADataModule`.
    """

    factors = (
        Factor("hair_colour", 4, "categorical"),
        Factor("skin_tone", 3, "categorical"),
        Factor("beard", 2, "categorical"),
        Factor("fringe", 3, "categorical"),
        Factor("eyeglasses", 2, "categorical"),
        Factor("smiling", 2, "categorical"),
        Factor("hat", 2, "categorical"),
        Factor("gender", 2, "categorical"),
    )

    def __init__(
        self,
        label_form: Literal["index", "rank"] = "index",
        labelled_set: Literal["random", "first"] = "random",
        **options: Any,
    ) -> None:
        super().__init__(label_form=label_form, labelled_set=labelled_set, **options)

    def factors_of(self, ids: Tensor) -> Tensor:
        """Classes of images by id, -1 where not known, (B, 8)."""
        has = dict(zip(ATTRIBUTES, super().factors_of(ids).unbind(1), strict=True))
        colours = torch.stack([has[f"{name}_Hair"] for name in ("Black", "Brown", "Blond", "Gray")], 1)
        hair = torch.where(colours.sum(1) == 1, colours.argmax(1), -1)
        skin = torch.where(has["Pale_Skin"] == 1, 0, -1)
        bangs, receding = has["Bangs"], has["Receding_Hairline"]
        fringe = torch.where(bangs + receding == 2, -1, bangs + 2 * receding)
        plain = [has[name] for name in ("Eyeglasses", "Smiling", "Wearing_Hat", "Male")]
        return torch.stack([hair, skin, 1 - has["No_Beard"], fringe, *plain], dim=1)

    def labels_of(self, ids: Tensor) -> Tensor:
        """Labels of images by id, NaN where not known, (B, label_size)."""
        labels = super().labels_of(ids)
        return labels.masked_fill(labels < 0, torch.nan)
