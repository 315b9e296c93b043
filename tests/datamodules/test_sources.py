"""Pictures from a file against the array that was written to it."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from datamodules.sources import MemoryMapped

SHAPE = (200, 2, 3, 5)


@pytest.fixture
def array() -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, SHAPE, dtype=np.uint8)


@pytest.fixture
def source(tmp_path: Path, array: NDArray[np.uint8]) -> MemoryMapped:
    array.tofile(tmp_path / "images.u8")
    return MemoryMapped(tmp_path / "images.u8", SHAPE)


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 150])
def test_pictures_by_id(source: MemoryMapped, array: NDArray[np.uint8], count: int) -> None:
    ids = torch.randint(0, 200, (count,), generator=torch.Generator().manual_seed(count))
    images = source.images(ids)
    assert len(source) == 200
    assert images.dtype == torch.uint8
    assert images.shape == (count, 2, 3, 5)
    assert np.array_equal(images.numpy(), array[ids.numpy()])


def test_a_batch_is_a_copy(source: MemoryMapped, array: NDArray[np.uint8]) -> None:
    source.images(torch.tensor([3])).zero_()
    assert np.array_equal(source.images(torch.tensor([3])).numpy(), array[3:4])


def test_an_id_that_is_not_there(source: MemoryMapped) -> None:
    with pytest.raises(IndexError, match="200"):
        source.images(torch.tensor([200]))


def test_another_process_can_be_given_it(source: MemoryMapped, array: NDArray[np.uint8]) -> None:
    copy = pickle.loads(pickle.dumps(source))
    assert np.array_equal(copy.images(torch.arange(200)).numpy(), array)


def test_a_file_of_another_size(source: MemoryMapped) -> None:
    with pytest.raises(ValueError, match=r"has 6000 bytes, not the 6030"):
        MemoryMapped(source.path, (201, 2, 3, 5))
