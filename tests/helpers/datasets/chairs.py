"""Small 3D Chairs in the official layout."""

from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from datamodules.chairs import ChairsDataModule

# The last two change places in paths, where "-" comes before "/": ids do not follow models.
MODELS = ["1a6f615e8b1b5ae4dbbc9440457e303e", "2b", "3c", "4d", "4d-b"]
VIEWS = [(elevation, azimuth) for elevation in (20, 30) for azimuth in (11, 23, 349)]


def write(folder: Path) -> Path:
    """A grey box on white in each picture, 600 pixels wide, its place telling model and view."""
    root = folder / "rendered_chairs"
    for model, name in enumerate(MODELS):
        (root / name / "renders").mkdir(parents=True)
        for view, (elevation, azimuth) in enumerate(VIEWS):
            picture = Image.new("RGB", (600, 600), (255, 255, 255))
            corner = (150 + 25 * view, 150 + 25 * model)
            ImageDraw.Draw(picture).rectangle((*corner, corner[0] + 99, corner[1] + 49), (90, 120, 60))
            file = f"image_{view + 1:03d}_p{elevation:03d}_t{azimuth:03d}_r096.png"
            picture.save(root / name / "renders" / file, compress_level=1)
    (root / "all_chair_names.mat").write_bytes(b"")
    return root


def small(folder: Path, **options: Any) -> ChairsDataModule:
    return ChairsDataModule(data_dir=folder, **({"batch_size": 2, "val_size": 4} | options))
