"""Plots of a study's results: the points are the right numbers, the files are there, mistakes are one line."""

import math
from pathlib import Path
from statistics import stdev

import pytest
import yaml
from PIL import Image

from vaezoo.cli.main import run
from vaezoo.pictures.figures import painted
from vaezoo.study.plot_section import Plot
from vaezoo.study.plots import caption, default_plots, figure, fitting_scale
from vaezoo.study.points import Point, plot_points, read_results

HEADER = "run,config,file,tau,labels,seed,budget,overrides,finished,steps,checkpoint,mig_20,mig_20_0,label_distance\n"
# mig_20 of tc: .2, .4 at τ 0; .5, .9 at τ 1; one seed at τ 10. beta has one τ. The last run is not done.
RESULTS = HEADER + (
    "tc-tau=0-labels=1-s0,tc,a.yaml,0,1,0,full,{},True,9,c,0.2,0,4\n"
    "tc-tau=0-labels=1-s1,tc,a.yaml,0,1,1,full,{},True,9,c,0.4,0,8\n"
    "tc-tau=10-labels=1-s0,tc,a.yaml,10,1,0,full,{},True,9,c,0.1,0,inf\n"
    "tc-tau=1-labels=1-s0,tc,a.yaml,1,1,0,full,{},True,9,c,0.5,0,2\n"
    "tc-tau=1-labels=1-s1,tc,a.yaml,1,1,1,full,{},True,9,c,0.9,0,6\n"
    "tc-tau=1-labels=2-s0,tc,a.yaml,1,2,0,full,{},True,9,c,0.6,0,3\n"
    "beta-tau=1-labels=1-s0,beta,b.yaml,1,1,0,full,{},True,9,c,0.3,0,5\n"
    "beta-tau=1-labels=1-s1,beta,b.yaml,1,1,1,full,{},False,,,,,\n"
)
AXES = ["config", "tau", "labels"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VAEZOO_DEBUG", raising=False)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.csv").write_text(RESULTS)
    return tmp_path


def write_study(**content: object) -> None:
    for name in "ab":
        Path(f"{name}.yaml").write_text("model: {class_path: VAE}\n")
    grid = {"tau": {"0": {"model.tau": 0}, "1": {"model.tau": 1}, "10": {"model.tau": 10}}, "data.labels": [1, 2]}
    study = {"configs": {"tc": "a.yaml", "beta": "b.yaml"}, "seeds": 2, "grid": grid, **content}
    study.setdefault("evaluate", {"metrics": ["mig_20", "label_distance"]})
    Path("study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))


def draw(*options: str) -> int:
    return run(["study", "study.yaml", "--output=out", "--plots_only", *options])


def test_points_over_an_axis_are_means_and_deviations_over_seeds(folder: Path) -> None:
    records = read_results(folder / "out" / "results.csv")
    assert len(records) == 7, "what is not finished is left out"
    panels = plot_points(Plot("tau", "mig_20", ("config",), ("labels",)), records, AXES)
    assert list(panels) == ["labels = 1", "labels = 2"]
    tc, beta = panels["labels = 1"]["tc"], panels["labels = 1"]["beta"]
    # std with n - 1 of two values is their distance / √2.
    assert [tuple(point) for point in tc] == [
        (0.0, pytest.approx(0.3), None, pytest.approx(0.2 / math.sqrt(2)), 2, ""),
        (1.0, pytest.approx(0.7), None, pytest.approx(0.4 / math.sqrt(2)), 2, ""),
        (10.0, 0.1, None, None, 1, ""),
    ]
    assert beta == [Point(1.0, 0.3, None, None, 1)]
    assert panels["labels = 2"] == {"tc": [Point(1.0, 0.6, None, None, 1)]}


def test_other_axes_that_vary_are_lines_by_default_and_never_share_a_point(folder: Path) -> None:
    records = read_results(folder / "out" / "results.csv")
    panels = plot_points(Plot("tau", "mig_20"), records, AXES)
    assert set(panels[""]) == {"tc, labels = 1", "tc, labels = 2", "beta, labels = 1"}
    with pytest.raises(ValueError, match="runs that differ in labels share a point: add it to by"):
        plot_points(Plot("tau", "mig_20", ("config",)), records, AXES)
    chosen = plot_points(Plot("tau", "mig_20", ("config",), only=("*-labels=1",)), records, AXES)
    assert [point.x for point in chosen[""]["tc"]] == [0, 1, 10]


def test_score_against_score_labels_each_place_and_has_bars_both_ways(folder: Path) -> None:
    records = read_results(folder / "out" / "results.csv")
    (lines,) = plot_points(Plot("label_distance", "mig_20", ("config",)), records, AXES).values()
    assert [point.label for point in lines["tc"]] == ["0, 1", "1, 1", "1, 2"], "an infinite score has no place"
    first = lines["tc"][0]
    assert first[:2] == (6, pytest.approx(0.3))
    assert first.x_std == pytest.approx(stdev([4, 8]))
    assert first.y_std == pytest.approx(stdev([0.2, 0.4]))
    assert lines["beta"] == [Point(5, 0.3, None, None, 1, "1, 1")]


def test_error_bars_that_are_drawn_are_the_points(folder: Path) -> None:
    records = read_results(folder / "out" / "results.csv")
    plot = Plot("tau", "mig_20", ("config",), only=("tc-*-labels=1",))
    (axes,) = painted(figure(plot, plot_points(plot, records, AXES), "t", over_axis=True), 5.6, 100).axes
    (drawn,) = axes.containers
    line, _, (bars,) = drawn
    assert line.get_ydata().tolist() == pytest.approx([0.3, 0.7, 0.1])
    half = 0.2 / math.sqrt(2)
    assert bars.get_segments()[0][:, 1].tolist() == pytest.approx([0.3 - half, 0.3 + half])
    assert not any(len(segment) and math.isfinite(segment[:, 1].sum()) for segment in bars.get_segments()[2:])


def test_scales_follow_the_values() -> None:
    assert fitting_scale([0.01, 0.015, 0.02, 0.025]) == "linear"
    assert fitting_scale([1.0, 4.0, 60.0]) == "log"
    assert fitting_scale([0.0, 0.1, 1.0, 10.0]) == "categorical"
    assert fitting_scale([0.0, 1.0]) == "linear"
    assert fitting_scale([1.0, "all"]) == "categorical"


def test_captions_tell_how_many_seeds() -> None:
    points = [Point(0.0, 1.0, None, None, seeds) for seeds in (2, 6)]
    assert caption(points) == "mean ± std over 2 to 6 seeds"
    assert caption(points[1:] * 2) == "mean ± std over 6 seeds"
    assert caption([Point(0.0, 1.0, None, None, 1)]) == "one seed, no error bars"


def test_a_single_point_is_said_to_be_one() -> None:
    for count, said in ((1, ["a single point"]), (2, [])):
        points = [Point(float(x), 1.0, None, None, 1) for x in range(count)]
        (axes,) = painted(figure(Plot("tau", "mig_20"), {"": {"": points}}, "t", over_axis=True), 5.6, 100).axes
        assert [text.get_text() for text in axes.texts if text.get_text()] == said


def test_plots_come_in_other_formats_and_sizes(folder: Path) -> None:
    write_study(plots=[{"x": "tau", "y": "mig_20"}])
    assert draw("--format", "svg", "png", "--width=2", "--dpi=50", "--title=false") == 0
    assert {file.name for file in Path("out/plots").iterdir()} == {"mig_20_over_tau.svg", "mig_20_over_tau.png"}
    assert Image.open("out/plots/mig_20_over_tau.png").width == 100
    assert "seeds" not in Path("out/plots/mig_20_over_tau.svg").read_text()


def test_by_default_every_score_is_drawn_over_every_axis(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_study()
    assert draw() == 0
    names = {"mig_20_over_tau", "mig_20_over_labels", "label_distance_over_tau", "label_distance_over_labels"}
    files = sorted((folder / "out" / "plots").iterdir())
    assert {file.name for file in files} == {f"{name}.{suffix}" for name in names for suffix in ("png", "pdf")}
    said = capsys.readouterr().out
    for file in files:
        assert f"written: {file}" in said
        if file.suffix == ".png":
            with Image.open(file) as picture:
                assert min(picture.size) > 300
        else:
            assert file.read_bytes().startswith(b"%PDF")
    (folder / "out" / "results.csv").write_text(RESULTS.replace("0.2,0,4", "0.25,0,4"))
    before = (folder / "out" / "plots" / "mig_20_over_tau.png").read_bytes()
    assert draw() == 0
    assert (folder / "out" / "plots" / "mig_20_over_tau.png").read_bytes() != before, "drawn again from the file"


def test_default_plots_take_the_summary_scores_and_configurations_as_a_last_resort(folder: Path) -> None:
    records = read_results(folder / "out" / "results.csv")
    assert default_plots(records, AXES, ["mig_20"]) == [Plot("tau", "mig_20"), Plot("labels", "mig_20")]
    same = [record for record in records if record["tau"] == record["labels"] == "1"]
    assert default_plots(same, AXES, ["mig_20"]) == [Plot("config", "mig_20")]
    assert default_plots(same[:2], AXES) == []
    assert default_plots([], AXES) == []


def test_named_plots_are_drawn_and_what_has_no_results_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_study(
        plots=[
            {"x": "label_distance", "y": "mig_20", "by": "config", "name": "tradeoff"},
            {"x": "tau", "y": "label_distance", "panels": ["config"], "scale": "log"},
            {"x": "tau", "y": "mig_20_9"},
        ]
    )
    assert draw() == 0
    said = capsys.readouterr().out
    assert {file.stem for file in Path("out/plots").iterdir()} == {"tradeoff", "label_distance_over_tau"}
    assert "not drawn: mig_20_9_over_tau: no finished run has both tau and mig_20_9" in said


WRONG: dict[str, tuple[object, str]] = {
    "no list": ({"x": "tau"}, "plots: expected a list, such as"),
    "key": (
        [{"x": "tau", "y": "mig_20", "pannels": "config"}],
        "unknown key 'pannels'; did you mean 'panels'?",
    ),
    "no y": ([{"x": "tau"}], "plots[0]: needs x and y"),
    "score": (
        [{"x": "tau", "y": "sap_dip"}],
        "'sap_dip' is no score (evaluate.metrics asks for mig_20",
    ),
    "axis": ([{"x": "tua", "y": "mig_20"}], "'tua' is no axis (there are config, tau, labels) or score"),
    "by": ([{"x": "tau", "y": "mig_20", "by": "lr"}], "plots[0].by: no axis is called 'lr'"),
    "y axis": ([{"x": "tau", "y": "labels"}], "plots[0].y: 'labels' is an axis; y is a score"),
    "scale": ([{"x": "tau", "y": "mig_20", "scale": "lin"}], "plots[0].scale: 'lin' is none of linear, log"),
    "file": ([{"x": "tau", "y": "mig_20", "name": "../up"}], "plots[0].name: '../up' names a file"),
    "twice": ([{"x": "tau", "y": "mig_20"}, {"x": "tau", "y": "mig_20"}], "plots[1]: another plot is called"),
    "list": ([{"x": "tau", "y": "mig_20", "only": [1]}], "plots[0].only: expected a list of names"),
    "shared": ([{"x": "tau", "y": "mig_20", "by": "config"}], "runs that differ in labels share a point"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_plot_is_one_line(wrong: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plots, message = WRONG[wrong]
    write_study(plots=plots)
    assert draw() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize(("text", "message"), [(None, "run the study first"), ("a,b\n1,2\n", "is no results.csv")])
def test_without_results_there_is_nothing_to_draw(
    text: str | None, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_study()
    (folder / "out" / "results.csv").unlink()
    if text is not None:
        (folder / "out" / "results.csv").write_text(text)
    assert draw() == 1
    assert message in capsys.readouterr().err
