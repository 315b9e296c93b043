"""The front page: short, and its numbers are those of the records."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT
from vaezoo.study.expected import read_expected
from vaezoo.study.reproduce import recorded

README = (ROOT / "README.md").read_text()
RECORDED = {  # what the table says: study and budget, row, column, scale
    "70.6": ("jointvae_seeds-full", "JointVAE, no labels", "cluster_accuracy", 100),
    "95.4 ± 2.5": ("jointvae_tuned-full", "JointVAE with views, no labels", "cluster_accuracy", 100),
    "0.31 ± 0.07": ("dipvae_tradeoff-long", "DIP-VAE-II, λod = 500", "sap_dip", 1),
    "95.8 ± 0.4": ("partedvae_mnist-long", "PartedVAE, 256 labels", "class_accuracy", 100),
    "0.90 ± 0.04": ("partedvae_short-full", "PartedVAE, 3,686 labels", "factor_vae_parted", 1),
    "315 ± 279": ("welavae_narrow-full", "WeLa-VAE, p = 2", "polar_error", 1),
    "111 ± 68": ("welavae_narrow-full", "WeLa-VAE, p = 2, labels first", "polar_error", 1),
    "0.59 ± 0.08": ("larvae_claim-full", "LaRVAE over β-TCVAE, τ = 1", "mig_20", 1),
}


def test_it_fits_a_screen_or_two() -> None:
    assert len(README.splitlines()) <= 150
    assert len(README.split()) <= 900


def test_pictures_are_small() -> None:
    pictures = re.findall(r'src="([^"]*)"', README)
    assert pictures
    assert all((ROOT / picture).stat().st_size < 300_000 for picture in pictures)


def test_its_links_work_on_the_package_index(tmp_path: Path) -> None:
    command = [sys.executable, "setup.py", "-q", "egg_info", f"--egg-base={tmp_path}"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    described = (tmp_path / "vaezoo.egg-info" / "PKG-INFO").read_text()
    assert "Description-Content-Type: text/markdown" in described
    targets = re.findall(r'\]\(([^)]*)\)|src="([^"]*)"', described.partition("# vaezoo")[2])
    assert len(targets) == len(re.findall(r'\]\(|src="', README))
    assert all("".join(target).startswith("https://") for target in targets)


def test_every_measured_number_has_a_record() -> None:
    rows = [line for line in README.split("numbers come out?")[1].split("\n## ")[0].splitlines() if "seed" in line]
    here = [line.strip("|").split("|")[4].strip().removesuffix(" %") for line in rows]
    assert here == list(RECORDED)


@pytest.mark.parametrize("text", RECORDED)
def test_numbers_are_the_records(text: str) -> None:
    study, label, column, scale = RECORDED[text]
    table = recorded(read_expected(ROOT / "experiments" / "expected.json"))[study]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    row = next(row for row in cells if row[0] == label)
    found = [float(number) * scale for number in row[cells[0].index(column)].split(" ± ")]
    for printed, value in zip(text.split(" ± "), found, strict=True):
        places = len(printed.partition(".")[2])
        assert float(printed) == pytest.approx(value, abs=0.5 * 10**-places + 1e-9)
