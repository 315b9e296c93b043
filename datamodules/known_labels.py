"""Labels that training may see."""

import torch
from torch import Tensor


class KnownLabels:
    """Labels of the labelled images by id; those of every other image are NaN, so none of them can reach a loss.

    Args:
        total: Number of images.
        ids: The labelled images, (N,).
        labels: Their labels, (N, K).
    """

    def __init__(self, total: int, ids: Tensor, labels: Tensor) -> None:
        # Every id points to its row of the labels; row 0 is NaN, for ids without one.
        self._row = torch.zeros(total, dtype=torch.long)
        self._row[ids] = torch.arange(1, len(ids) + 1)
        self._labels = torch.cat([labels.new_full((1, labels.shape[1]), torch.nan), labels])

    def of(self, ids: Tensor, hidden: int = 0) -> tuple[Tensor, Tensor]:
        """Labels of images (B, K), and which are known (B,); the first `hidden` images count as unlabelled."""
        rows = self._row.index_select(0, ids)
        rows[:hidden].zero_()
        return self._labels.index_select(0, rows), rows > 0
