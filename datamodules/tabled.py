"""Images with factors from a table, possibly incomplete or empty, instead of a complete grid."""

import torch
from torch import Tensor

from datamodules.base import ImageDataModule
from datamodules.factor_table import FactorTable
from datamodules.factors import label


class TabledDataModule(ImageDataModule):
    """Images with a table of factors, which may have no column; a subclass sets it before it calls this constructor."""

    source = "file"
    table: FactorTable

    def factors_of(self, ids: Tensor) -> Tensor:
        """Factor indices of images by id, -1 if unobserved, (B, K)."""
        return self.table.places[ids].floor().long()

    def values_of(self, ids: Tensor) -> Tensor:
        """Factor values of images by id: indices, or positions in bins; -1 if unobserved, (B, K)."""
        return self.table.places[ids]

    def labels_of(self, ids: Tensor) -> Tensor:
        """Labels of images by id, NaN if unobserved, (B, label_size). With "rank", numbers keep their distances."""
        columns = self._labelled_columns()
        if self.label_form == "rank":
            return self.table.labels[ids][:, columns]
        indices = self.factors_of(ids)[:, columns]
        widths = torch.tensor(self.label_sizes or [1] * len(columns), dtype=torch.long)
        unknown = (indices < 0).repeat_interleave(widths, dim=1)
        known = label(indices.clamp(min=0), list(self.labelled_factors), self.label_form)
        return known.masked_fill(unknown, torch.nan)

    def with_labels(self, ids: Tensor) -> Tensor:
        """The given images with at least one observed labelled factor."""
        return ids[(self.table.places[ids][:, self._labelled_columns()] >= 0).any(1)]

    def cells_of(self, ids: Tensor) -> Tensor:
        """Cells over which the labelled set is balanced: what occurs together, not observed being one more value."""
        cells: Tensor = self.factors_of(ids)[:, self._labelled_columns()].unique(dim=0, return_inverse=True)[1]
        return cells

    def _labelled_columns(self) -> list[int]:
        return [self.factor_names.index(factor.name) for factor in self.labelled_factors]
