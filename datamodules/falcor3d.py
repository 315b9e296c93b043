"""Falcor3D: a living room under moving light, seen from many places."""

from datamodules.factors import Factor
from datamodules.numbered import NumberedPictures


class Falcor3DDataModule(NumberedPictures):
    """Falcor3D (Nie et al., 2020): 233,280 pictures over seven factors.

    Unpack the official archive to `data_dir/Falcor3D_down128`, with 128×128 images in `images/000000.png` to
    `images/233279.png` and `train-rec.labels`, a NumPy file. Each image size gets a cache, 2.9 GB at 64. Takes the
    arguments of `NumberedPictures`.
    """

    factors = (
        Factor("light_intensity", 5),
        Factor("light_x", 6),
        Factor("light_y", 6),
        Factor("light_z", 6),
        Factor("camera_x", 6),
        Factor("camera_y", 6),
        Factor("camera_z", 6),
    )
    folder_name, labels_name, archive = "Falcor3D_down128", "train-rec.labels", "Falcor3D_128x128"
