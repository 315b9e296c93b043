import pytest
import torch

from datamodules import BlobsDataModule
from datamodules.renderers.blobs import BlobsRenderer
from datamodules.weak_labels import memberships, polar


def ready(**options: object) -> BlobsDataModule:
    data = BlobsDataModule(**options)  # type: ignore[arg-type]
    data.setup()
    return data


def test_surface() -> None:
    data = BlobsDataModule()
    assert data.image_shape == (1, 64, 64)
    assert data.factor_names == ("row", "column", "radius")
    assert data.factor_sizes == (64, 64, 25)
    assert set(data.factor_kinds) == {"ordered"}
    assert len(data.pictures) == 102_400
    assert data.source == "render"
    assert BlobsDataModule(samples=3).factor_sizes == (64, 64, 3)


def test_pictures_are_the_renderers() -> None:
    factors = torch.tensor([[0, 0, 0], [30, 40, 24], [63, 63, 12]])
    images = BlobsDataModule(jitter=0.3).images_at(factors)
    assert torch.equal(images, BlobsRenderer(jitter=0.3).draw(factors) / 255)
    lit = images[1, 0] > 0
    centre = (lit.nonzero() * images[1, 0][lit][:, None]).sum(0) / images[1].sum()
    assert centre.tolist() == pytest.approx([30, 40])


def test_102_400_images_of_which_4096_differ() -> None:
    data = BlobsDataModule()
    one_row = data.pictures.images(torch.arange(64 * 25))  # the positions of the first row
    assert len({image.numpy().tobytes() for image in one_row}) == 64
    assert (
        len({image.numpy().tobytes() for image in BlobsDataModule(jitter=0.1).pictures.images(torch.arange(25))}) == 25
    )


@pytest.mark.parametrize("bins", range(2, 9))
def test_labels_are_sectors_then_rings(bins: int) -> None:
    data = BlobsDataModule(bins=bins)
    ids = torch.arange(0, 102_400, 37)
    labels = data.labels_of(ids)
    assert labels.shape == (len(ids), data.label_size) == (len(ids), 2 * bins)
    rows, columns = ids // 25 // 64, ids // 25 % 64
    sector, ring = memberships(*polar(rows, columns), bins)
    assert torch.equal(labels[:, :bins], sector)
    assert torch.equal(labels[:, bins:], ring)


def test_labels_by_hand() -> None:
    # (10, 0) lies on the left edge, near; (0, 63) on the top edge, far; (20, 50) is 53.9 of 90.5 away, at 68 degrees.
    ids = torch.tensor([10 * 64, 63, 20 * 64 + 50]) * 25
    assert BlobsDataModule(bins=2).labels_of(ids).tolist() == [[1, 0, 1, 0], [0, 1, 0, 1], [0, 1, 0, 1]]
    assert BlobsDataModule(bins=3).labels_of(ids).argmax(1).tolist() == [0, 2, 2]
    assert BlobsDataModule(bins=3).labels_of(ids)[:, 3:].argmax(1).tolist() == [0, 2, 1]


def test_by_default_every_training_image_carries_its_own_label() -> None:
    data = ready(batch_size=256, device_resident=True)
    assert torch.equal(data.labelled_ids, data.train_ids)
    batch = next(iter(data.train_dataloader()))  # of ids, as the pictures stay on the device
    assert batch.labelled.all()
    assert len(batch.x) == 256
    assert torch.equal(batch.y, data.labels_of(batch.x))


def test_few_labels_come_beside_the_stream_and_are_balanced() -> None:
    data = ready(bins=3, labels=18, labelled_batch_size=10)
    assert data.labels_of(data.labelled_ids).sum(0).tolist() == [6] * 6
    assert data.cells_of(data.labelled_ids).bincount().tolist() == [2] * 9
    batch = next(iter(data.train_dataloader()))
    assert batch.labelled.tolist() == [False] * 64 + [True] * 10


@pytest.mark.parametrize(
    ("options", "message"),
    [({"bins": 9}, "bins must lie in 2..8"), ({"jitter": 1.0}, "jitter"), ({"samples": 0}, "samples")],
)
def test_bad_input(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ready(**options)


def test_positions_go_row_by_row_with_the_labels_of_their_blobs() -> None:
    data = BlobsDataModule(bins=3)
    batches = list(data.position_batches(4))
    assert len(batches) == 25, "every blob of a position"
    centres = [(row, column) for row in (0, 21, 42, 63) for column in (0, 21, 42, 63)]
    for blob, places in enumerate(batches):
        assert torch.equal(places.x, data.images_at(torch.tensor([[*centre, blob] for centre in centres])))
    for image, (row, column) in zip(batches[0].x[:, 0], centres, strict=True):
        assert image[row, column] == image.max()
    expected = memberships(*polar(*torch.tensor(centres).unbind(1)), 3)
    assert all(torch.equal(places.y, torch.cat(expected, dim=1)) for places in batches)
    assert [len(places.x) for places in data.position_batches(2, variants=3)] == [4] * 3
