"""Milliseconds a batch of 64 pictures from each source, beside raw indexing and loaders that go picture by picture."""

import tempfile
from collections.abc import Callable, Iterable
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.functional import to_pil_image, to_tensor

from datamodules import (
    BlobsDataModule,
    DSpritesDataModule,
    ImageDataModule,
    ImageFolderDataModule,
    Shapes3DDataModule,
)
from datamodules.factors import Factor
from datamodules.grids import GridDataModule
from datamodules.memory import InMemory
from datamodules.sources import ImageSource, MemoryMapped
from tests.bench.timing import best_of
from vaezoo.types import Batch

BATCH, PICTURES, FILES = 64, 10_000, 2_000
CPU = torch.device("cpu")


class Pictures(GridDataModule):
    """Pictures of any source."""

    factors = (Factor("number", PICTURES),)
    source = "file"

    def __init__(self, opened: ImageSource, **options: Any) -> None:
        super().__init__(val_size=0, test_size=0, **options)
        self.opened = opened
        self.image_shape = (3, 64, 64)

    def open(self) -> ImageSource:
        """What was given."""
        return self.opened


class SameOneByOne(Dataset[Batch]):
    """A datamodule's own batches, of one picture each."""

    def __init__(self, data: ImageDataModule) -> None:
        self.fetch, self.ids = data.train_dataloader().fetch, data.train_ids.split(1)

    def __len__(self) -> int:
        """Number of pictures."""
        return len(self.ids)

    def __getitem__(self, index: int) -> Batch:
        """One picture in [0, 1], its label, and whether it has one."""
        x, y, labelled = self.fetch(self.ids[index], 0)
        return Batch(x[0].float().div(255), y[0], labelled[0])


class ArrayOneByOne(Dataset[tuple[Tensor, Tensor]]):
    """What a loader usually reads: an array in memory, (N, H, W, C), with torchvision's transform."""

    def __init__(self, store: Tensor, labels: Tensor) -> None:
        self.array, self.labels = store.permute(0, 2, 3, 1).contiguous().numpy(), labels

    def __len__(self) -> int:
        """Number of pictures."""
        return len(self.array)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """One picture in [0, 1], (C, H, W), and its label."""
        return to_tensor(self.array[index]), self.labels[index]


def taking(batches: Iterable[Any], use: Callable[[Any], object] = lambda batch: batch) -> Callable[[], object]:
    """Take one batch at each call, one epoch after another."""
    endless = chain.from_iterable(repeat(batches))
    return lambda: use(next(endless))


def through(data: ImageDataModule) -> Callable[[], object]:
    """The whole way of a training batch up to the model."""
    data.setup()
    return taking(
        data.train_dataloader(),
        lambda batch: data.on_after_batch_transfer(data.transfer_batch_to_device(batch, CPU, 0), 0),
    )


def folder_of(store: Tensor, folder: Path) -> ImageFolderDataModule:
    """Pictures as files, with a table that gives each a number."""
    folder.mkdir()
    for i, picture in enumerate(store):
        to_pil_image(picture).save(folder / f"{i:05d}.png", compress_level=1)
    table = folder / "labels.csv"
    table.write_text("file,number\n" + "".join(f"{i:05d}.png,{i}\n" for i in range(len(store))))
    return ImageFolderDataModule(folder, table, val_size=0, test_size=0)


def sources(store: Tensor, folder: Path) -> dict[str, ImageDataModule]:
    """One datamodule for each way to come by a picture."""
    file = folder / "images.u8"
    file.write_bytes(store.numpy().tobytes())
    return {
        "in memory": Pictures(InMemory(store)),
        "in memory, half of it labelled": Pictures(InMemory(store), batch_size=BATCH // 2, labels=10),
        "memory-mapped cache": Pictures(MemoryMapped(file, (PICTURES, 3, 64, 64))),
        "folder of PNG files, cached": folder_of(store[:FILES], folder / "photos"),
        "3DShapes drawn": Shapes3DDataModule(source="render"),
        "dSprites drawn": DSpritesDataModule(source="render"),
        "Blobs drawn": BlobsDataModule(),
    }


def beside(data: ImageDataModule, store: Tensor) -> dict[str, Callable[[], object]]:
    """A source and its rivals, which load as many pictures of the same shape."""
    like = store[:, : data.image_shape[0]].contiguous()
    picked = torch.randint(min(PICTURES, len(data.pictures)), (100, BATCH)).unbind()
    array = ArrayOneByOne(like, torch.rand(PICTURES, data.label_size))
    return {
        "ms": through(data),
        "raw indexing": taking(picked, lambda ids: like[ids].float().div_(255)),
        "itself per sample": taking(DataLoader(SameOneByOne(data), BATCH, shuffle=True)),
        "array per sample": taking(DataLoader(array, BATCH, shuffle=True)),
    }


def run(rounds: int = 400) -> list[dict[str, object]]:
    """Measure and return one row a source: its milliseconds, those of its rivals, and the ratios."""
    rows: list[dict[str, object]] = []
    store = torch.randint(0, 256, (PICTURES, 3, 64, 64), dtype=torch.uint8)
    with tempfile.TemporaryDirectory() as folder:
        for name, data in sources(store, Path(folder)).items():
            ms = {what: 1000 * seconds for what, seconds in best_of(beside(data, store), rounds).items()}
            row: dict[str, object] = {"source": name} | {what: round(value, 3) for what, value in ms.items()}
            row["of raw (≤ 2)"] = round(ms["ms"] / ms["raw indexing"], 2)
            row["of itself per sample (≤ 0.25)"] = round(ms["ms"] / ms["itself per sample"], 2)
            row["of array per sample"] = round(ms["ms"] / ms["array per sample"], 2)
            rows.append(row)
    return rows
