import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor

from datamodules.loader import BatchLoader, Epochs
from tests.helpers.ranks import free_port
from vaezoo.types import Batch

IDS = torch.arange(100, 148)
LABELLED = IDS[::4]  # 12 of them


def stream(epochs: Epochs, epoch: int) -> list[int]:
    return [i for ids, extra in epochs.batches(epoch) for i in ids[: len(ids) - extra].tolist()]


def labelled_stream(epochs: Epochs, count: int) -> list[int]:
    batches = itertools.chain.from_iterable(epochs.batches(epoch) for epoch in itertools.count())
    return list(itertools.islice((i for ids, extra in batches for i in ids[len(ids) - extra :].tolist()), count))


def fetch(ids: Tensor, labelled: int) -> Batch:
    return Batch(ids.clone(), torch.zeros(len(ids), 1), torch.arange(len(ids)) >= len(ids) - labelled)


def loader(workers: int = 0) -> BatchLoader:
    return BatchLoader(fetch, Epochs(IDS, 8, True, 0, LABELLED, 5), workers)


def seen(batches: Iterator[Batch] | list[Batch]) -> list[list[int]]:
    return [batch.x.tolist() for batch in batches]


def test_an_epoch_holds_every_id_once() -> None:
    for epoch in range(3):
        order = stream(Epochs(IDS, 8, True, 0), epoch)
        assert sorted(order) == IDS.tolist()
        assert order != IDS.tolist()


def test_incomplete_training_batches_are_dropped_and_hit_other_ids_each_time() -> None:
    epochs = Epochs(IDS, 10, True, 0)
    assert len(epochs) == 4
    assert [len(ids) for ids, _ in epochs.batches(0)] == [10] * 4
    left_out = [set(IDS.tolist()) - set(stream(epochs, epoch)) for epoch in range(3)]
    assert all(len(ids) == 8 for ids in left_out)
    assert len(set(map(frozenset, left_out))) == 3


def test_evaluation_keeps_the_order_and_the_last_batch() -> None:
    epochs = Epochs(IDS, 10, False, 0)
    assert stream(epochs, 0) == stream(epochs, 1) == IDS.tolist()
    assert [len(ids) for ids, _ in epochs.batches(0)] == [10] * 4 + [8]
    assert len(epochs) == 5


def test_shuffles_differ_between_epochs_and_seeds() -> None:
    # Linear mixtures of seed and epoch, or seeds beyond 32 bits, would repeat some of them.
    seeds = [0, 1, 2, 3, 2**31, 2**32, 2**32 + 1]
    orders = {tuple(stream(Epochs(IDS, 8, True, seed), epoch)) for seed in seeds for epoch in range(30)}
    assert len(orders) == len(seeds) * 30
    assert stream(Epochs(IDS, 8, True, 3), 5) == stream(Epochs(IDS, 8, True, 3), 5)


@pytest.mark.parametrize(("labels", "batch"), [(1, 4), (10, 64), (12, 5), (12, 12), (5000, 64)])
def test_labelled_ids_go_round_for_ever_in_new_orders(labels: int, batch: int) -> None:
    labelled = torch.arange(labels) * 3
    passes = 4
    found = labelled_stream(Epochs(IDS, 8, True, 0, labelled, batch), passes * labels)
    rounds = [found[i * labels : (i + 1) * labels] for i in range(passes)]
    assert all(sorted(one) == labelled.tolist() for one in rounds)
    assert len(set(map(tuple, rounds))) == (passes if labels > 1 else 1)


def test_labelled_orders_are_not_those_of_the_stream() -> None:
    epochs = Epochs(IDS, 8, True, 0, IDS, 8)
    assert labelled_stream(epochs, len(IDS)) != stream(epochs, 0)


def test_batches_say_how_many_are_labelled() -> None:
    for ids, extra in Epochs(IDS, 8, True, 0, LABELLED, 5).batches(0):
        assert (len(ids), extra) == (13, 5)
        assert set(ids[8:].tolist()) <= set(LABELLED.tolist())
    assert [extra for _, extra in Epochs(IDS, 8, True, 0, IDS[:0], 5).batches(0)] == [0] * 6


@pytest.mark.parametrize("epoch", [0, 7])
def test_any_batch_can_be_looked_up(epoch: int) -> None:
    epochs = Epochs(IDS, 8, True, 0, LABELLED, 5)
    whole = [ids.tolist() for ids, _ in epochs.batches(epoch)]
    for first in range(7):
        assert [ids.tolist() for ids, _ in epochs.batches(epoch, first)] == whole[first:]


def test_too_few_images_for_a_batch() -> None:
    with pytest.raises(ValueError, match=r"too few training images \(48\) for one batch of 49: lower batch_size"):
        Epochs(IDS, 49, True, 0)
    assert len(Epochs(IDS, 49, False, 0)) == 1


def test_each_iteration_is_the_next_epoch() -> None:
    batches = loader()
    expected = [[ids.tolist() for ids, _ in batches.epochs.batches(epoch)] for epoch in range(3)]
    assert [seen(iter(batches)) for _ in range(3)] == expected
    batches.load_state_dict({"epoch": 1, "position": 0})
    assert [seen(iter(batches)) for _ in range(2)] == expected[1:]


def test_an_iteration_given_up_is_not_taken_up_again() -> None:
    batches = loader()
    next(iter(batches))
    assert len(list(batches)) == len(batches) == 6


def test_workers_change_nothing() -> None:
    alone, helped = loader(), loader(workers=2)
    for _ in range(2):
        for a, b in zip(alone, helped, strict=True):
            assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stop", [1, 4, 6, 8])
def test_a_saved_position_is_continued(stop: int, workers: int) -> None:
    unbroken = loader()
    expected = seen(itertools.chain(iter(unbroken), iter(unbroken), iter(unbroken)))
    first, second = loader(workers), loader(workers)
    taken = seen(itertools.islice(itertools.chain.from_iterable(itertools.repeat(first)), stop))
    second.load_state_dict(first.state_dict())
    rest = seen(itertools.islice(itertools.chain.from_iterable(itertools.repeat(second)), len(expected) - stop))
    assert taken + rest == expected


def test_a_resumed_epoch_survives_a_false_start() -> None:
    batches = loader()
    expected = [[ids.tolist() for ids, _ in batches.epochs.batches(epoch)] for epoch in range(3)]
    batches.load_state_dict({"epoch": 0, "position": 6})
    iter(batches)
    assert next(iter(batches)).x.tolist() == expected[1][0]
    assert seen(iter(batches)) == expected[1][1:]
    assert seen(iter(batches)) == expected[2]


def shard(rank: int, port: int, folder: str) -> None:
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=2, rank=rank)
    training, evaluation = Epochs(IDS, 8, True, 0, LABELLED, 5), Epochs(IDS[:47], 8, False, 0)
    batches = [BatchLoader(fetch, training, workers) for workers in (0, 1)]
    torch.save(
        {
            "train": [seen(iter(batches[0])) for _ in range(2)],
            "workers": [seen(iter(batches[1])) for _ in range(2)],
            "evaluation": stream(evaluation, 0),
            "length": (len(training), len(evaluation)),
        },
        Path(folder) / f"{rank}.pt",
    )
    dist.destroy_process_group()


def test_two_processes_share_the_epoch_and_the_labels(tmp_path: Path) -> None:
    # Forked: the children need no gradients, and importing everything again would take longer than the test.
    mp.start_processes(shard, args=(free_port(), str(tmp_path)), nprocs=2, start_method="fork")
    ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    alone = Epochs(IDS, 8, True, 0)
    for rank in ranks:
        assert rank["length"] == (3, 3)
        assert rank["workers"] == rank["train"]
    for epoch in range(2):
        parts = [[i for batch in rank["train"][epoch] for i in batch[:8]] for rank in ranks]
        # As in DistributedSampler, ranks take turns in the permutation of one process.
        assert [i for pair in zip(*parts, strict=True) for i in pair] == stream(alone, epoch)
    # The ranks' labelled rows, in turn, are one labelled stream: 60 places are 5 passes over 12 labels.
    steps = zip(*(rank["train"][0] + rank["train"][1] for rank in ranks), strict=True)
    labelled = [i for pair in steps for batch in pair for i in batch[8:]]
    assert labelled == labelled_stream(Epochs(IDS, 8, True, 0, LABELLED, 5), 60)
    assert all(sorted(labelled[i : i + 12]) == LABELLED.tolist() for i in range(0, 60, 12))
    # The odd one is filled up with the first, so that both ranks have as many.
    assert [rank["evaluation"] for rank in ranks] == [IDS[:47:2].tolist(), [*IDS[1:47:2].tolist(), 100]]
