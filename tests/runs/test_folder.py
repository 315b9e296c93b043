"""A run's folder by its names, as the real command line leaves it, and how often a resumed run reads its checkpoint."""

import re
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from datamodules import ImageDataModule
from vaezoo.cli.main import run
from vaezoo.runs.checkpoint_io import AtomicCheckpointIO, OpenCheckpoint
from vaezoo.runs.data import RunData
from vaezoo.runs.folder import RunFolder, new_run_folder, scores_of

ROOT = Path(__file__).parent.parent.parent
NETWORK = '{"class_path": "DenseNetwork", "init_args": {"encoder_widths": [4], "decoder_widths": [4]}}'
FIT = [
    *("--model=BetaVAE", "--model.latent_dim=2", f"--model.network={NETWORK}", "--experiment=exp"),
    *("--data=BlobsDataModule", "--data.samples=1", "--data.batch_size=4", "--data.val_size=8", "--data.test_size=8"),
    *("--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false", "--trainer.val_check_interval=2"),
    *("--trainer.callbacks+=SavePictures", "--trainer.num_sanity_val_steps=0"),
]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("VAEZOO_RUN", "VAEZOO_LAST", "VAEZOO_DEBUG", "VAEZOO_IMPORT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Every whole read of a file that ends in .ckpt: loads, and checks of its checksums; not a look at its step."""
    found: list[tuple[str, str]] = []
    load, check = torch.load, zipfile.ZipFile.testzip

    def loaded(path: Any, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("mmap"):
            found.append(("load", str(path)))
        return load(path, *args, **kwargs)

    def checked(archive: zipfile.ZipFile) -> Any:
        if str(archive.filename).endswith(".ckpt"):  # and not a draft, which is checked where it is written
            found.append(("check", str(archive.filename)))
        return check(archive)

    monkeypatch.setattr(torch, "load", loaded)
    monkeypatch.setattr(zipfile.ZipFile, "testzip", checked)
    return found


def test_what_commands_leave_is_where_the_folder_says_and_a_resume_reads_once(reads: list[tuple[str, str]]) -> None:
    assert run(["fit", *FIT, "--trainer.max_steps=2"]) == 0
    assert not reads
    assert run(["fit", *FIT, "--trainer.max_steps=4", "--ckpt_path=last"]) == 0
    first, second = RunFolder.all_in(Path("runs/exp"))
    assert reads == [("check", str(first.last)), ("load", str(first.last))]
    reads.clear()
    assert run(["test", *FIT, "--ckpt_path", str(second.best)]) == 0
    assert run(["predict", *FIT, "--ckpt_path", str(second.last)]) == 0
    assert reads == [(how, str(path)) for path in (second.best, second.last) for how in ("check", "load")]
    *_, predicted = RunFolder.all_in(Path("runs/exp"))
    for path in (first.config, first.log, first.last, first.best, second.last, second.best, predicted.codes()):
        assert path.is_file(), path
    assert first.all_pictures()
    assert first.all_pictures()[0].parent == first.pictures
    assert {file.parent for file in second.path.rglob("*.ckpt")} == {second.checkpoints}
    assert run(["evaluate", f"--ckpt_path={second.last}", "--metrics=active_units", "--images=8", "--resamples=0"]) == 0
    assert scores_of(second.last).is_file()
    assert run(["traverse", f"--ckpt_path={second.last}", "--steps=2"]) == 0
    assert second.traversals.is_dir()


def test_the_run_of_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "exp" / "20250101-120000"
    run_folder = RunFolder(folder)
    run_folder.checkpoints.mkdir(parents=True)
    assert RunFolder.of(run_folder.last) == run_folder
    run_folder.config.write_text("seed_everything: 3")
    assert RunFolder.of(run_folder.last) == run_folder
    assert RunFolder.of(folder / "mine.ckpt") == run_folder  # beside its configuration
    assert RunFolder.of(folder / "others" / "mine.ckpt") == run_folder
    assert RunFolder.of(Path("runs/a/b/checkpoints/last.ckpt")).path == Path("runs/a/b")
    monkeypatch.chdir(run_folder.checkpoints)
    assert RunFolder.of("last.ckpt").path == folder
    assert run_folder.read_config() == {"seed_everything": 3}
    assert run_folder.title == "exp/20250101-120000"


def test_runs_are_sorted_by_age_and_checkpoints_by_use(tmp_path: Path) -> None:
    for name in ("20250101-120000-10", "20250101-120000-9", "20250101-120000", "20250102-000000"):
        (tmp_path / name).mkdir()
    (tmp_path / "20250103-000000").write_text("no folder")
    names = [run_folder.path.name for run_folder in RunFolder.all_in(tmp_path)]
    assert names == ["20250101-120000", "20250101-120000-9", "20250101-120000-10", "20250102-000000"]
    found = RunFolder(tmp_path / names[0])
    found.checkpoints.mkdir()
    for path in (found.best, found.previous, found.last):
        path.touch()
    assert list(found.all_checkpoints()) == [found.last, found.previous, found.best]


def test_runs_that_start_in_the_same_second_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "strftime", lambda _: "20250101-120000")
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: new_run_folder(tmp_path / "exp"), range(8)))
    assert sorted(path.name for path in made) == sorted(
        ["20250101-120000", *(f"20250101-120000-{number}" for number in range(2, 9))]
    )
    monkeypatch.setenv("LOCAL_RANK", "1")  # a rank that one of them starts
    monkeypatch.setenv("VAEZOO_RUN", made[3].name)
    assert new_run_folder(tmp_path / "exp") == made[3]


def test_a_command_that_fails_or_writes_nothing_leaves_no_folder() -> None:
    assert run(["fit", *FIT, "--model.beta=-1"]) == 1
    assert not Path("runs").exists()
    assert run(["fit", *FIT, "--trainer.fast_dev_run=true"]) == 0
    assert not Path("runs").exists()


def test_a_checkpoint_that_was_read_is_handed_on_once_and_for_its_path_alone(tmp_path: Path) -> None:
    path, other = tmp_path / "a.ckpt", tmp_path / "b.ckpt"
    for file, step in ((path, 1), (other, 2)):
        AtomicCheckpointIO().save_checkpoint({"state_dict": {}, "global_step": step}, file)
    content = {"state_dict": {}, "global_step": 7}
    io = AtomicCheckpointIO(OpenCheckpoint(path, content))
    assert io.load_checkpoint(str(path)) is content
    assert io.load_checkpoint(path)["global_step"] == 1
    assert AtomicCheckpointIO(OpenCheckpoint(path, content)).load_checkpoint(other)["global_step"] == 2


def test_data_is_opened_once_and_takes_what_the_user_grants_not_what_the_run_asks(tmp_path: Path) -> None:
    opened: list[ImageDataModule] = []
    for name in ("a", "b"):
        folder = RunFolder(tmp_path / name)
        folder.path.mkdir()
        folder.config.write_text(
            "data: {class_path: BlobsDataModule, init_args: {samples: 1, val_size: 8, test_size: 8, "
            "num_workers: '2', device_resident: true, batch_size: 100000000}}"
        )
    data = RunData(ImageDataModule, keep=opened.append)
    settings = [data.of(RunFolder(tmp_path / name))[1] for name in ("a", "b")]
    (blobs,) = opened
    assert (blobs.num_workers, blobs.device_resident, blobs.batch_size) == (0, False, 256)
    assert settings[0] == settings[1]
    assert settings[0]["arguments"]["num_workers"] == 0  # as it was opened
    granted = ["--data.num_workers=1", "--data.device_resident=true", "--data.batch_size=300"]
    (kept, _) = RunData(ImageDataModule, granted).of(RunFolder(tmp_path / "a"))
    assert (kept.num_workers, kept.device_resident, kept.batch_size) == (1, True, 300)
    with pytest.raises(FileNotFoundError, match=r"c holds no config.yaml that names the data: give --data"):
        data.of(RunFolder(tmp_path / "c"))


def test_no_other_file_spells_the_names_of_a_run_folder() -> None:
    name = re.compile(
        r"""["'/](config\.yaml|metrics\.(csv|json)|(last|best|previous)\.ckpt|checkpoints|wandb\.json|labelled_ids\.npy"""
        r"""|nonfinite\.jsonl|codes\.npy)\b"""
    )
    text = re.compile(r'"""(?s:.*?)"""')
    for file in (*(ROOT / "vaezoo").rglob("*.py"), *(ROOT / "datamodules").rglob("*.py")):
        if file.name not in ("folder.py", "help.py", "__main__.py"):  # what users read spells them
            assert not (found := name.search(text.sub("", file.read_text()))), (file, found)
