"""`vaezoo evaluate --codes` and `vaezoo.metrics.evaluate`: codes that another program made."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import vaezoo.metrics as M
import vaezoo.metrics.functional as F
from vaezoo.cli.main import run
from vaezoo.metrics.functional.places import factor_places

RNG = np.random.default_rng(0)
SHAPE, SIZE = RNG.integers(0, 3, 300), RNG.random(300)  # a category, and a factor that never repeats
CODES = np.stack([SHAPE + RNG.normal(0, 0.1, 300), SIZE + RNG.normal(0, 0.1, 300), RNG.normal(size=300)], axis=1)
FACTORS = np.stack([SHAPE, SIZE], axis=1)
BINNED = np.stack([SHAPE, np.minimum(np.floor((SIZE - SIZE.min()) / np.ptp(SIZE) * 20), 19)], axis=1)


def scores(path: Path) -> dict[str, float]:
    found = json.loads(path.read_text())["metrics"]
    return {name: score["value"] for metric in found.values() for name, score in metric["scores"].items()}


def probabilities(classes: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.eye(3)[classes] * 0.94 + 0.02


def test_factors_are_binned_for_scores_that_need_bins_alone() -> None:
    found = M.evaluate(CODES, FACTORS, ["mig_20", "sap_dip", "active_units"], factor_kinds=("categorical", "ordered"))
    assert found.results["mig_20"].scores == F.mig(CODES, BINNED)
    # R² of the values themselves, which no shift or scale of them changes.
    expected = F.sap(CODES, FACTORS, categorical=(0,))["sap_dip"]
    assert found.results["sap_dip"].scores["sap_dip"] == pytest.approx(expected, abs=1e-9)
    assert expected != pytest.approx(F.sap(CODES, BINNED, categorical=(0,))["sap_dip"], abs=1e-4)
    assert found.images == 300
    low, high = found.results["mig_20"].intervals["mig_20"]
    assert low < found.results["mig_20"].scores["mig_20"] < high


def test_places_are_those_of_a_histogram() -> None:
    count, places = factor_places(SIZE, bins=7)
    edges = np.histogram_bin_edges(SIZE, 7)
    assert count == 7
    assert np.bincount(places.astype(int)).tolist() == np.histogram(SIZE, edges)[0].tolist()
    assert factor_places(np.array([5.0, 1.0, 5.0]))[1].tolist() == [1, 0, 1]
    assert factor_places(np.arange(30.0), categorical=True)[0] == 30
    assert factor_places(np.array(["b", "a"]))[1].tolist() == [1, 0]


def test_rows_whose_factors_are_not_observed_count_where_none_is_read() -> None:
    holes = FACTORS.copy()
    holes[::3, 1] = np.nan
    found = M.evaluate(CODES, holes, ["sap_dip", "gaussian_total_correlation"], resamples=0)
    seen = ~np.isnan(holes[:, 1])
    expected = F.sap(CODES[seen], FACTORS[seen])["sap_dip"]
    assert found.results["sap_dip"].scores["sap_dip"] == pytest.approx(expected, abs=1e-9)
    everything = F.gaussian_total_correlation(CODES)
    assert found.results["gaussian_total_correlation"].scores == pytest.approx(everything)


def test_discrete_latents_have_classes() -> None:
    codes = np.concatenate([CODES, probabilities((SHAPE + 1) % 3)], axis=1)
    names = np.array(["square", "heart", "oval"])[SHAPE]
    found = M.evaluate(codes, names[:, None], ["cluster_accuracy"], discrete=(3,), resamples=0)
    assert found.results["cluster_accuracy"].scores["cluster_accuracy"] == 1


def test_without_factors_codes_alone_are_scored() -> None:
    found = M.evaluate(CODES, resamples=0)
    assert set(found.results) == {"gaussian_total_correlation", "active_units"}
    assert "no factors" in found.skipped["mig_20"]
    assert "needs a model" in found.skipped["kl"]


def test_files_of_every_form_give_the_same_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.chdir(tmp_path)
    names = np.array(["square", "heart", "oval"])[SHAPE]
    columns = {**{f"code_{k}": CODES[:, k] for k in range(3)}, "shape": names, "size": SIZE}
    np.savez("a.npz", codes=CODES, factors=np.stack([names, SIZE.astype(str)], 1), factor_names=["shape", "size"])
    with Path("b.csv").open("w", newline="") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    parquet.write_table(pyarrow.table(columns), "c.parquet")
    files = ["a.npz", "b.csv", "c.parquet"]
    options = ["--metrics", "mig_20", "sap_dip", "--resamples=0", "--output=tables"]
    assert run(["evaluate", "--codes", *files, *options]) == 0
    expected = {**F.mig(CODES, BINNED), **F.sap(CODES, FACTORS, categorical=(0,))}
    for name in "abc":
        assert scores(Path(f"metrics_{name}.json")) == pytest.approx(expected, abs=1e-9)
    lines = list(csv.DictReader(Path("tables.csv").read_text().splitlines()))
    assert [line["checkpoint"] for line in lines] == [name for name in files for _ in range(2)]
    assert r"mig\_20" in Path("tables.tex").read_text()


def test_bins_are_an_option(tmp_path: Path) -> None:
    np.savez(tmp_path / "codes.npz", codes=CODES, factors=FACTORS)
    given = ["evaluate", "--codes", str(tmp_path / "codes.npz"), "--metrics=mig_20", "--resamples=0"]
    assert run([*given, "--factor_bins=5"]) == 0
    coarse = np.stack([SHAPE, np.minimum(np.floor((SIZE - SIZE.min()) / np.ptp(SIZE) * 5), 4)], axis=1)
    assert scores(tmp_path / "metrics_codes.json")["mig_20"] == pytest.approx(F.mig(CODES, coarse)["mig_20"])


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        ({"z": CODES}, [], "it holds z, not codes and factors"),
        ({"codes": CODES, "factors": FACTORS[:9]}, [], "codes holds 300 rows and factors 9"),
        ({"codes": CODES, "factors": FACTORS, "factor_names": ["a"]}, [], "factor_names has 1 entries and factors 2"),
        ({"codes": CODES, "factors": FACTORS, "factor_kinds": ["odd", "ordered"]}, [], "'odd' is none of categorical"),
        ({"codes": CODES * np.nan, "factors": FACTORS}, [], "NaN or infinity in columns [0, 1, 2]"),
        ({"codes": CODES, "factors": FACTORS / 0.0}, [], "factor factor_0 is infinite in row"),
        ({"codes": np.array([object()])}, [], "cannot be read: Object arrays cannot be loaded"),
        ({"codes": CODES, "factors": FACTORS}, ["--metrics", "kl"], "kl does not fit: it needs a model"),
        ({"codes": CODES, "factors": FACTORS}, ["--metrics", "mig_20[y]"], "no latent groups"),
        ({"codes": CODES, "factors": FACTORS}, ["--split=test"], "--split is for checkpoints"),
        ({"codes": CODES, "factors": FACTORS}, ["--data.labels=3"], "--data is for checkpoints"),
        ({"codes": CODES, "factors": FACTORS}, ["--factor_bins=1"], "factor_bins must be 2 or more"),
        ({"codes": CODES, "factors": FACTORS}, ["--ckpt_path=last.ckpt"], "or files of codes by --codes"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_wrong_files_are_one_line(
    content: dict[str, object], options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "codes.npz", **content)  # type: ignore[arg-type]
    assert run(["evaluate", "--codes", str(tmp_path / "codes.npz"), "--resamples=0", *options]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_wrong_tables_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, said in {
        "a,b\n1,2\n": "no column whose name begins with 'code', only a, b",
        "code_0,b\nx,2\n": "a column of codes holds text",
        "": "its first line must name every column",
    }.items():
        (tmp_path / "t.csv").write_text(text)
        assert run(["evaluate", "--codes", str(tmp_path / "t.csv")]) == 1
        assert said in capsys.readouterr().err
    assert run(["evaluate", "--codes", str(tmp_path / "none.npz")]) == 1
    assert "is not there" in capsys.readouterr().err
