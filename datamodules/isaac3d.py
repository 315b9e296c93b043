"""Isaac3D: a robot arm and an object in a kitchen."""

from datamodules.factors import Factor
from datamodules.numbered import NumberedPictures


class Isaac3DDataModule(NumberedPictures):
    """Isaac3D (Nie et al., 2020): 737,280 pictures over nine factors.

    Unpack the official archive to `data_dir/Isaac3D_down128`, with 128×128 images in `images/000000.png` to
    `images/737279.png` and `labels.npy`. Each image size gets a cache, 9.1 GB at 64. Takes the arguments of
    `NumberedPictures`.
    """

    factors = (
        Factor("shape", 3, "categorical"),
        Factor("robot_x", 8),
        Factor("robot_y", 5),
        Factor("camera_height", 4),
        Factor("object_scale", 4),
        Factor("light_intensity", 4),
        Factor("light_y", 6),
        Factor("object_color", 4, "categorical"),
        Factor("wall_color", 4, "categorical"),
    )
    folder_name, labels_name, archive = "Isaac3D_down128", "labels.npy", "Isaac3D_128x128"
