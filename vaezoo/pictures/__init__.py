"""Pictures of what models have learnt: image grids, plots, and callbacks that draw during training."""

from vaezoo.pictures.callback import Pictures, SavePictures
from vaezoo.pictures.classes import SaveClassSamples, SavePriors, SaveTransfers
from vaezoo.pictures.codes import SaveUnitNats
from vaezoo.pictures.grids import grid
from vaezoo.pictures.labels import SaveLabelTraversals
from vaezoo.pictures.matrices import SaveCodeMatrices
from vaezoo.pictures.picture import Picture, stack
from vaezoo.pictures.plots import curves, heat_maps, matrix
from vaezoo.pictures.positions import SavePositionMaps

__all__ = [
    "Picture",
    "Pictures",
    "SaveClassSamples",
    "SaveCodeMatrices",
    "SaveLabelTraversals",
    "SavePictures",
    "SavePositionMaps",
    "SavePriors",
    "SaveTransfers",
    "SaveUnitNats",
    "curves",
    "grid",
    "heat_maps",
    "matrix",
    "stack",
]
