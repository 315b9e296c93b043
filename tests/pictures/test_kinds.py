"""Every kind of `vaezoo traverse` on real models, through the command line: pictures hold what they claim."""

from itertools import pairwise
from pathlib import Path
from statistics import NormalDist, fmean

import pytest
import torch
from PIL import Image
from torch import Tensor
from torchvision.io import read_image
from torchvision.utils import save_image

import vaezoo
from datamodules import BlobsDataModule
from tests.helpers.toy import ToyDataModule
from vaezoo.cli.main import run
from vaezoo.models import PartedVAE
from vaezoo.nn.latents import Gaussian
from vaezoo.pictures import Picture, curves, grid, mixtures, stack
from vaezoo.pictures.labels import label_spans
from vaezoo.pictures.mixtures import component_range, prior_picture, quantile_values
from vaezoo.pictures.positions import SCALE, label_maps, position_maps
from vaezoo.pictures.subjects import Start, read_picture


class IndexDataModule(ToyDataModule):
    """The toy with many test images, and labels that are indices."""

    def __init__(self, labels: int | None = None) -> None:
        super().__init__(test_size=60, labels=labels, label_form="index")


DATA = "--data=tests.pictures.test_kinds.IndexDataModule"
NETWORK = '--model.network={"class_path": "DenseNetwork", "init_args": {"encoder_widths": [8], "decoder_widths": [8]}}'
MODELS = {
    "beta": [DATA, "--model=BetaVAE", "--model.latent_dim=3"],
    "joint": [DATA, "--model=JointVAE", "--model.continuous=2", "--model.discrete=[4]"],
    "parted": [DATA, "--model=PartedVAE", "--model.dim_z=2", "--model.dim_u=1", "--model.discrete=[4,2]"],
    "larvae": [DATA, "--data.labels=20", "--model=LaRVAE", "--model.label_dim=3", "--model.nuisance_dim=1"],
    "plain": [DATA, "--data.labels=20", "--model=LaRVAE", "--model.label_dim=3", "--model.tau=0"],
    "wela": ["--data=BlobsDataModule", "--data.batch_size=4", "--data.bins=3", "--model=WeLaVAE"],
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("trained")
    for name, options in MODELS.items():
        quick = [NETWORK, "--trainer.max_steps=2", "--trainer.limit_val_batches=0", "--trainer.accelerator=cpu"]
        quick += ["--trainer.enable_progress_bar=false", f"--experiment={name}", f"--runs_dir={folder}"]
        assert run(["fit", *options, *quick]) == 0
    return {name: next(folder.glob(f"{name}/*/checkpoints/last.ckpt")) for name in MODELS}


def traverse(*args: object) -> int:
    return run(["traverse", *map(str, args)])


def drawn(path: Path) -> Tensor:
    return read_image(str(path)).float() / 255


def same(path: Path, expected: Picture) -> None:
    torch.testing.assert_close(drawn(path), expected.pixels(), atol=1 / 255, rtol=0)


def images() -> tuple[IndexDataModule, Tensor, Tensor, Tensor]:
    """The 60 test images in the order of the command line, with labels and factors."""
    data = IndexDataModule()
    data.setup()
    (found,) = data.evaluation_batches(1000, "test", 0, torch.device("cpu"))
    return data, found[0].x, found[0].y, found[1]


def test_units_of_all_groups_are_ranked_over_the_pool(trained: dict[str, Path], tmp_path: Path) -> None:
    assert traverse("--ckpt_path", trained["joint"], "--kind=ranked", "--steps=4", f"--output={tmp_path}") == 0
    model, x = vaezoo.load(trained["joint"]), images()[1]
    one_by_one = [model.unit_nats(image[None]) for image in x]
    nats = {(g, u): fmean(float(part[g][u]) for part in one_by_one) for g, u in [("z", 0), ("z", 1), ("c", 0)]}
    order = sorted(nats, key=lambda unit: -nats[unit])
    assert all(nats[a] >= nats[b] for a, b in pairwise(order))
    rows = [torch.cat([x[:1], model.traverse(x[:1], g, [u], 4)[0][0]]) for g, u in order]
    names = [f"{g}{u}  {nats[g, u]:.2f} nats" for g, u in order]
    columns = ["image", "-2.0", "-0.7", "0.7", "2.0"]
    title = "joint · JointVAE · step 2 · units by KL, mean over up to 2,000 images"
    same(tmp_path / "ranked_image0.png", grid(rows, names, columns, title))


def test_several_images_walk_along_one_unit(trained: dict[str, Path], tmp_path: Path) -> None:
    options = ["--kind=starts", "--image_indices", 4, 1, "--units", 1, "--latents", "z", "--steps=3", "--span", -1, 1]
    assert traverse("--ckpt_path", trained["joint"], *options, f"--output={tmp_path}") == 0
    model, x = vaezoo.load(trained["joint"]), images()[1]
    rows = [torch.cat([x[[i]], model.traverse(x[[i]], "z", [1], 3, (-1.0, 1.0))[0][0]]) for i in (4, 1)]
    title = "joint · JointVAE · step 2 · z1"
    same(tmp_path / "starts_z1.png", grid(rows, ["image4", "image1"], ["image", "-1.0", "0.0", "1.0"], title))
    assert [file.name for file in tmp_path.iterdir()] == ["starts_z1.png"]


def test_draws_from_the_prior_walk_along_one_unit_and_follow_the_seed(trained: dict[str, Path], tmp_path: Path) -> None:
    for folder, seed in (("a", 0), ("b", 0), ("c", 1)):
        options = ["--kind=starts", "--prior", "--draws=3", "--steps=2", f"--seed={seed}"]
        assert traverse("--ckpt_path", trained["parted"], *options, f"--output={tmp_path / folder}") == 0
    a, b, c = (drawn(tmp_path / folder / "starts_z0.png") for folder in "abc")
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
    model = vaezoo.load(trained["parted"])
    torch.manual_seed(0)
    codes = model.draw(3)
    walked = codes["z"][:, None].repeat(1, 2, 1)
    walked[:, :, 0] = torch.tensor([-3.0, 3.0])
    rows = [model.decode({"z": walked[i], "u": codes["u"][[i, i]]}).sigmoid() for i in range(3)]
    title = "parted · PartedVAE · step 2 · z0"
    same(tmp_path / "a" / "starts_z0.png", grid(rows, ["draw0", "draw1", "draw2"], ["-3.0", "3.0"], title))


def test_each_class_walks_along_one_unit(trained: dict[str, Path], tmp_path: Path) -> None:
    options = ["--kind=classes", "--prior", "--latents", "z", "--units", 1, "--steps=2", f"--output={tmp_path}"]
    assert traverse("--ckpt_path", trained["joint"], *options) == 0
    model, rows = vaezoo.load(trained["joint"]), []
    for k in range(4):
        c = torch.zeros(2, 4)
        c[:, k] = 1
        rows.append(model.decode({"z": torch.tensor([[0.0, -2.0], [0.0, 2.0]]), "c": c}).sigmoid())
    title, names = "joint · JointVAE · step 2 · prior · c0 by z1", [f"class {k}" for k in range(4)]
    same(tmp_path / "classes_prior_c0_z1.png", grid(rows, names, ["-2.0", "2.0"], title))


def test_a_picture_of_ones_own_stands_beside_its_edits(trained: dict[str, Path], tmp_path: Path) -> None:
    mine = tmp_path / "me.png"
    save_image(torch.rand(3, 9, 17), mine)
    x = read_picture(mine, (1, 1, 2))
    assert x.shape == (1, 1, 1, 2)
    with Image.open(mine) as picture:
        small = picture.convert("L").resize((2, 1), Image.Resampling.BILINEAR)
    assert (x.flatten() * 255).tolist() == pytest.approx([small.getpixel((i, 0)) for i in range(2)])
    assert read_picture(mine, (3, 5, 4)).shape == (1, 3, 5, 4)
    options = ["--image", mine, "--latents", "z", "--units", 0, "--steps=2", f"--output={tmp_path}"]
    assert traverse("--ckpt_path", trained["beta"], *options) == 0
    row = torch.cat([x, vaezoo.load(trained["beta"]).traverse(x, "z", [0], 2)[0][0]])
    same(tmp_path / "me_z" / "z0.png", grid([row], ["z0"], ["image", "-2.0", "2.0"]))


def test_values_are_inferred_from_the_images_along_a_factor(trained: dict[str, Path], tmp_path: Path) -> None:
    options = ["--kind=factor", "--factor=size", "--units", 2, "--image_indices", 3, 0, f"--output={tmp_path}"]
    assert traverse("--ckpt_path", trained["beta"], *options) == 0
    model, (data, _, _, factors), strips = vaezoo.load(trained["beta"]), images(), []
    for i, title in ((3, "beta · BetaVAE · step 2 · z2 inferred along size"), (0, "")):
        along = factors[[i] * 5].clone()
        along[:, 1] = torch.arange(5)
        x = data.images_at(along)
        values = [f"{value:.2f}" for value in model.represent(x)[:, 2].tolist()]
        strips.append(grid([x], ["size"], list("01234"), title, values))
    same(tmp_path / "factor_size_z2.png", stack(strips))


def test_quantiles_are_those_of_the_class_s_own_component(trained: dict[str, Path], tmp_path: Path) -> None:
    component = Gaussian(torch.tensor([[0.0], [3.0]]), torch.tensor([[0.0], [-1.0]]))
    values = quantile_values(component, 1, torch.tensor([0.001, 0.5, 0.999]))
    normal = NormalDist(3.0, float(torch.tensor(-0.5).exp()))
    assert values[0].tolist() == pytest.approx([normal.inv_cdf(p) for p in (0.001, 0.5, 0.999)], rel=1e-5)
    assert traverse("--ckpt_path", trained["parted"], "--kind=quantiles", "--steps=3", f"--output={tmp_path}") == 0
    names = {f"quantiles_c0_class{k}.png" for k in range(4)} | {f"quantiles_c1_class{k}.png" for k in range(2)}
    assert {file.name for file in tmp_path.iterdir()} == names
    model = vaezoo.load(trained["parted"])
    assert isinstance(model, PartedVAE)
    first, second = mixtures.components(model)
    normal = NormalDist(float(second.mean[1, 0]), float((0.5 * second.logvar[1, 0]).exp()))
    u = torch.tensor([[float(first.mean[0, 0]), normal.inv_cdf(p)] for p in (0.001, 0.5, 0.999)])
    title, columns = "parted · PartedVAE · step 2 · c1 class 1", ["0.001", "0.500", "0.999"]
    top = grid([model.decode({"z": torch.zeros(3, 2), "u": u}).sigmoid()], ["u1"], columns, title).pixels()
    assert torch.allclose(
        drawn(tmp_path / "quantiles_c1_class1.png")[:, : top.shape[1], : top.shape[2]], top, atol=0.005
    )


def test_ranges_hold_all_means_and_two_deviations(trained: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    one = Gaussian(
        torch.tensor([[0.0, 5.0], [-1.0, 7.0], [9.0, 9.0]]), torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 0.0]])
    )
    e = float(torch.tensor(1.0).exp())
    expected = torch.tensor([[-1 - 2 * e, 3.0], [-1 + 2 * e, 9.0]])
    torch.testing.assert_close(component_range([one], [0, 1]), expected)
    other = Gaussian(torch.tensor([[-20.0, 6.0]]), torch.zeros(1, 2))
    torch.testing.assert_close(component_range([one, other]), torch.tensor([[-22.0, 3.0], [11.0, 11.0]]))
    model = vaezoo.load(trained["parted"])
    assert isinstance(model, PartedVAE)
    with torch.no_grad():
        model.heads["u"].component_mean[1][:] = torch.tensor([[30.0], [40.0]])  # type: ignore[index]
    seen: list[Tensor] = []

    def keep(lines: dict[str, tuple[Tensor, Tensor]], *rest: object, **marks: object) -> Tensor:
        seen.extend(points for points, _ in lines.values())
        return curves(lines, "", "", "")

    monkeypatch.setattr(mixtures, "curves", keep)
    prior_picture({"": model}, [Start("prior", model.centre())], 1, 3, "")
    low, high = component_range([mixtures.components(model)[1]])[:, 0].tolist()
    assert low < 30 < 40 < high
    assert (float(seen[0][0]), float(seen[0][-1])) == pytest.approx((low, high))


def test_sweeps_and_priors_of_every_variable(trained: dict[str, Path], tmp_path: Path) -> None:
    options = ["--kind=between", "--classes", 1, 0, "--image_indices", 2, "--steps=2", f"--output={tmp_path}"]
    assert traverse("--ckpt_path", trained["parted"], *options) == 0
    model, x = vaezoo.load(trained["parted"]), images()[1][[2]]
    assert isinstance(model, PartedVAE)
    codes, rows, names = {name: q.mode() for name, q in model.encode(x).items()}, [], []
    for unit, component in enumerate(mixtures.components(model)):
        low, high = component_range([component], [0, 1])[:, 0].tolist()
        u = codes["u"].repeat(2, 1)
        u[:, unit] = torch.tensor([low, high])
        rows.append(torch.cat([x, model.decode({"z": codes["z"].repeat(2, 1), "u": u}).sigmoid()]))
        names.append(f"u{unit}  {low:.2f} to {high:.2f}")
    same(
        tmp_path / "between_image2.png",
        grid(rows, names, (), "parted · PartedVAE · step 2 · image2 · over classes 1 and 0"),
    )
    assert traverse("--ckpt_path", trained["parted"], "--kind=priors", f"--output={tmp_path}") == 0
    assert {file.name for file in tmp_path.glob("prior*")} == {"prior_u0.png", "prior_u1.png"}


def test_labels_walk_over_their_own_values_for_all_checkpoints(trained: dict[str, Path], tmp_path: Path) -> None:
    data, x, y, _ = images()
    assert label_spans(data, 3).tolist() == [[0, 0, 0], [3, 4, 5]]
    both = ["--ckpt_path", trained["plain"], trained["larvae"]]
    assert traverse(*both, "--kind=labels", "--image_indices", 1, "--units", 2, f"--output={tmp_path}") == 0
    walked = y[[1]].repeat(5, 1)
    walked[:, 2] = torch.tensor([0, 1.25, 2.5, 3.75, 5])
    truth = data.images_of(walked)
    models = [vaezoo.load(trained[name]) for name in ("plain", "larvae")]
    made = [
        model.decode({"y": walked, "z": model.encode(x[[1]])["z"].mode().repeat(5, 1)}).sigmoid() for model in models
    ]
    rows = [torch.cat([x[[1]], part]) for part in (truth, *made) if part is not None]
    names = ["angle: true", "angle: plain", "angle: larvae"]
    same(tmp_path / "labels_image1.png", grid(rows, names, ["image"], "plain, larvae · labels of image1"))


def test_maps_are_means_over_all_blobs_on_one_scale(trained: dict[str, Path], tmp_path: Path) -> None:
    assert SCALE == (-3.0, 3.0)
    assert traverse("--ckpt_path", trained["wela"], "--kind=positions", "--steps=3", f"--output={tmp_path}") == 0
    assert {file.name for file in tmp_path.iterdir()} == {"position_maps.png", "label_map.png"}
    model, data = vaezoo.load(trained["wela"]), BlobsDataModule(bins=3)
    maps = position_maps(model, list(data.position_batches(3)), 3)
    for i, row in enumerate((0, 32, 63)):  # 31.5 rounds to the even 32
        for j, column in enumerate((0, 32, 63)):
            factors = torch.tensor([[row, column, blob] for blob in range(25)])
            labels = data.labels_of((row * 64 + column) * 25 + torch.arange(25))
            expected = model.represent(data.images_at(factors), labels).mean(0)
            torch.testing.assert_close(maps[:, i, j], expected, atol=1e-5, rtol=0)
    sector, ring = label_maps(next(data.position_batches(3)).y, (3, 3), 3)
    assert sector.tolist() == [[0, 2, 2], [0, 1, 2], [0, 0, 1]]  # of angles 0 to π/2 from the left edge
    assert ring.tolist() == [[0, 1, 2], [1, 1, 2], [2, 2, 2]]  # of distances 0, 32, 45.3, 63, 70.7, 89.1


def test_figures_of_several_checkpoints_are_stacked(trained: dict[str, Path], tmp_path: Path) -> None:
    for folder, names in {"a": ["beta"], "b": ["joint"], "both": ["beta", "joint"]}.items():
        paths = [trained[name] for name in names]
        options = ["--prior", "--latents", "z", "--steps=3", f"--output={tmp_path / folder}"]
        assert traverse("--ckpt_path", *paths, *options) == 0
    a, b, both = (drawn(tmp_path / folder / "prior_z.png") for folder in ("a", "b", "both"))
    assert torch.equal(both[:, : a.shape[1], : a.shape[2]], a)
    assert torch.equal(both[:, a.shape[1] :, : b.shape[2]], b)


WRONG = {
    "kind": (["beta", "--kind=unit"], "'unit' is none of"),
    "classes": (["beta", "--kind=classes"], "kind classes needs a model with classes, and BetaVAE has none"),
    "quantiles": (["beta", "--kind=quantiles"], "kind quantiles needs a PartedVAE"),
    "between": (["beta", "--kind=between"], "kind between needs a PartedVAE"),
    "pair": (["parted", "--kind=between", "--classes", "1", "9"], "--classes 1 9: the variables have 4, 2 classes"),
    "priors": (["joint", "--kind=priors"], "kind priors needs a PartedVAE"),
    "prior unit": (["parted", "--kind=priors", "--units", "2"], "latent 'u' has units 0 to 1, not 2"),
    "labels": (["beta", "--kind=labels"], "kind labels needs LaRVAE checkpoints"),
    "label": (["larvae", "--kind=labels", "--units", "3"], "there are labels 0 to 2, not 3"),
    "positions": (["beta", "--kind=positions"], "kind positions needs data with positions"),
    "no factor": (["beta", "--kind=factor"], "kind factor needs --factor: IndexDataModule has shape, size, angle"),
    "factor": (["beta", "--kind=factor", "--factor=hue"], "--factor hue is not known"),
    "group": (["joint", "--kind=factor", "--factor=size", "--latents", "c"], "needs a group of continuous units"),
    "unit": (["beta", "--kind=starts", "--units", "5"], "latent 'z' has units 0 to 2, not 5"),
    "steps": (["beta", "--steps=0"], "--steps must be 1 or more"),
    "index": (["beta", "--image_indices", "60"], "--image_indices 60: the data holds 60 test images, 0 to 59"),
    "no image": (["beta", "--image", "none.png"], "--image none.png: no such file"),
    "image": (["beta", "--image", "text.png"], "--image text.png cannot be read"),
    "format": (["beta", "--image", "frame.gif"], "--image frame.gif cannot be read"),
    "data": (["beta", "--data=BlobsDataModule"], "reads images of (1, 1, 2), but BlobsDataModule gives"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_does_not_fit_is_one_line(
    wrong: str,
    trained: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.png").write_text("no picture")
    Image.new("L", (4, 4)).save("frame.gif")  # a format that is not read
    (model, *options), message = WRONG[wrong]
    assert traverse("--ckpt_path", trained[model], "--output=drawn", *options) != 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("vaezoo: error:")]
    assert message in line
    assert not Path("drawn").exists()


def test_help_lists_the_kinds_with_their_figures(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["traverse", "--help"])
    said = capsys.readouterr().out
    assert "\n  quantiles  u by quantiles of each class's component" in said
    assert "(JointVAE Fig. 8)" in said
