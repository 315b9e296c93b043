"""What `vaezoo predict` saves: codes, and beside them what they are the codes of."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from datamodules import ImageDataModule
from datamodules.loader import BatchLoader
from vaezoo.metrics.encoded import code_columns, discrete_sizes
from vaezoo.models import VAE
from vaezoo.runs.files import atomic_write


def save_codes(file: Path, batches: Sequence[Tensor], model: VAE, data: ImageDataModule, loader: Any) -> None:
    """Write an .npz file that `vaezoo evaluate --codes` reads, without pickles.

    It holds `codes` (N, D), units of discrete groups last, and `unit_names` of their columns: z_0, z_1, … and, for the
    probability of class 2 of the discrete latent 0, c_0_2. Beside them are `ids` of the images and their `factors`
    (N, K), numbered as for all scores, NaN where not known.

    Args:
        file: Where it goes.
        batches: Codes as `predict_step` gives them.
        model: The model.
        data: The data, set up.
        loader: What gave the images; of one that is no datamodule's own, ids and factors are not known.

    Raises:
        ValueError: There are no images.
    """
    if not batches:
        raise ValueError(f"{type(data).__name__} holds no test images to predict: set data.test_size above 0")
    columns, names = code_columns(model), model.unit_names
    tables: dict[str, Any] = {
        "codes": torch.cat(list(batches)).cpu()[:, columns].numpy(),
        "unit_names": [names[column] for column in columns],
        "discrete": np.array(discrete_sizes(model), dtype=np.int64),
    }
    if isinstance(loader, BatchLoader):
        tables |= _facts(data, torch.cat([loader.batch_ids(0, i) for i in range(len(batches))]))
    with atomic_write(file) as draft, draft.open("wb") as content:
        np.savez_compressed(content, **tables)


def _facts(data: ImageDataModule, ids: Tensor) -> dict[str, Any]:
    places = data.values_of(ids).double()
    facts: dict[str, Any] = {"ids": ids.numpy(), "factors": places.where(places >= 0, torch.nan).numpy()}
    if data.factor_names:
        facts |= {"factor_names": data.factor_names, "factor_kinds": data.factor_kinds}
        facts["factor_bins"] = max(data.factor_sizes)  # all values stay apart, as they do for the checkpoint
    return facts
