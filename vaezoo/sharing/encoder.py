"""A trained encoder in scikit-learn's shape."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from torch import Tensor
from typing_extensions import Self

from vaezoo.models import VAE
from vaezoo.runs.loading import load
from vaezoo.runs.options import checkpoint_in
from vaezoo.sharing.addresses import SCHEMES
from vaezoo.sharing.pretrained import shared_folder
from vaezoo.types import Batch


class Encoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Codes of images as a scikit-learn transformer, for pipelines.

    `fit` does nothing. A checkpoint is loaded to the CPU on first use; a model stays on its device. WeLaVAE's encoder,
    which also reads labels, gets none.

    Args:
        checkpoint: A checkpoint, a run's folder (best checkpoint), `pretrained:NAME`, `hub:user/name` or a model.
        batch_size: Number of images to encode at once.
    """

    _loaded: tuple[Any, VAE | None] = (None, None)  # what was named, and its model

    def __init__(self, checkpoint: str | Path | VAE, batch_size: int = 256) -> None:
        self.checkpoint = checkpoint
        self.batch_size = batch_size

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: N803  # scikit-learn's name
        """Nothing to do: the model is trained."""
        return self

    def transform(self, X: NDArray[Any] | Tensor) -> NDArray[np.float32]:  # noqa: N803
        """Codes of images, as `represent` gives them, (N, D).

        Args:
            X: Images (N, channels, height, width) of the model's shape, NumPy or torch, N being any number; bytes from
                0 to 255, or floats from 0 to 1.

        Raises:
            TypeError: They are no array, or of another type.
            ValueError: They have another shape, or floats beyond 0 and 1.
        """
        model = self.model
        if self.batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {self.batch_size}")
        _check(X, model.image_shape)
        was_training = model.training
        try:
            model.eval()
            batches = [self._codes(model, X[i : i + self.batch_size]) for i in range(0, len(X), self.batch_size)]
        finally:
            model.train(was_training)
        return np.concatenate([np.empty((0, len(model.unit_names)), dtype=np.float32), *batches])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns: z_0, z_1, …; c_0_2 for the probability of class 2 of the discrete latent 0."""
        return np.array(self.model.unit_names, dtype=object)

    @property
    def model(self) -> VAE:
        """The model, loaded where it is not yet."""
        known, model = self._loaded
        if model is None or known is not self.checkpoint:  # set_params may name another
            given = self.checkpoint
            model = given if isinstance(given, VAE) else load(_file(str(given)))
            self._loaded = (given, model)
        return model

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @staticmethod
    def _codes(model: VAE, images: NDArray[Any] | Tensor) -> NDArray[np.float32]:
        if not isinstance(images, Tensor):  # a copy: arrays may be read-only, or in another byte order
            images = torch.from_numpy(np.array(images, dtype=np.uint8 if images.dtype == np.uint8 else np.float32))
        x = images
        if x.is_floating_point() and not bool(((x >= 0) & (x <= 1)).all()):  # nor NaN
            low, high = float(x.min()), float(x.max())
            raise ValueError(
                f"images are floats from {low:g} to {high:g}, the model reads 0 to 1: divide by 255, or give uint8"
            )
        batch = model.receive(Batch.unlabelled(x.to(model.device)))
        return model.represent(batch.x).float().cpu().numpy()


def _check(images: Any, image_shape: tuple[int, int, int]) -> None:
    """Refuse what is no array of images of the model's shape, and say how to make one of it."""
    if not isinstance(images, (np.ndarray, Tensor)):
        raise TypeError(f"images are a {type(images).__name__}: give a NumPy array or a tensor (N, C, H, W)")
    is_float = images.is_floating_point() if isinstance(images, Tensor) else images.dtype.kind == "f"
    if not is_float and images.dtype not in (np.uint8, torch.uint8):
        raise TypeError(f"images are {images.dtype}: give bytes (uint8) from 0 to 255, or floats from 0 to 1")
    shape, (channels, height, width) = tuple(images.shape), image_shape
    if shape[1:] == image_shape:
        return
    remedy = "resize the images, or take another model"
    if shape == image_shape:
        remedy = "a single image needs one more dimension, images[None]"
    elif shape[1:] == (height, width, channels):
        turned = "permute" if isinstance(images, Tensor) else "transpose"
        remedy = f"channels come first, images.{turned}(0, 3, 1, 2)"
    elif channels == 1 and shape[1:] == (height, width):
        remedy = "the channel is missing, images[:, None]"
    elif shape[1:] == (channels * height * width,):
        remedy = f"they are flat, images.reshape(-1, {channels}, {height}, {width})"
    raise ValueError(f"images are {shape}, the model reads (N, {channels}, {height}, {width}): {remedy}")


def _file(given: str) -> str | Path:
    return shared_folder(given) if given.startswith(SCHEMES) else checkpoint_in(given)
