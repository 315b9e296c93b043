"""Tables of factors: numbered, scaled and binned by hand."""

import numpy as np
import pytest
import torch

from datamodules.factor_table import FactorTable
from datamodules.factors import Factor
from datamodules.table_files import typed

NAN = np.nan


def test_numbers_keep_their_distances_as_labels_and_have_indices() -> None:
    table = FactorTable.of({"size": np.array([10.0, 1.0, NAN, 2.0])}, 4)
    assert table.factors == (Factor("size", 3, "ordered"),)
    assert table.places[:, 0].tolist() == [2, 0, -1, 1]
    assert table.labels[[0, 1, 3], 0].tolist() == pytest.approx([1, 0, 1 / 9])
    assert table.labels[2, 0].isnan()


def test_text_is_categorical_in_alphabetical_order() -> None:
    table = FactorTable.of({"colour": np.array(["red", "", "blue", "green"])}, 4)
    assert table.factors == (Factor("colour", 3, "categorical"),)
    assert table.places[:, 0].tolist() == [2, -1, 0, 1]
    assert table.labels[[0, 2, 3], 0].tolist() == [1, 0, 0.5]


def test_many_numbers_are_counted_in_bins_of_one_width() -> None:
    values = np.array([0.0, 1.0, 2.4, 2.6, 7.5, 9.99, 10.0])
    table = FactorTable.of({"x": values}, 7, bins=4)  # each 2.5 wide
    assert table.factors == (Factor("x", 4, "ordered"),)
    assert table.places[:-1, 0].tolist() == pytest.approx((values[:-1] / 2.5).tolist())
    assert table.places[:, 0].floor().tolist() == [0, 0, 0, 1, 3, 3, 3]  # the greatest is in the last bin
    expected = np.histogram(values, bins=4)[0]
    assert torch.bincount(table.places[:, 0].floor().long(), minlength=4).tolist() == expected.tolist()
    assert table.labels[:, 0].tolist() == pytest.approx((values / 10).tolist())


def test_kinds_of_numbers() -> None:
    columns = {"digit": np.array([7.0, 3.0, 7.0]), "angle": np.array([0.0, 90.0, 180.0])}
    table = FactorTable.of(columns, 3, {"digit": "categorical", "angle": "periodic"})
    assert table.factors == (Factor("digit", 2, "categorical"), Factor("angle", 3, "periodic"))
    assert table.labels[:, 0].tolist() == [1, 0, 1]


def test_one_value_is_a_factor_that_never_varies() -> None:
    table = FactorTable.of({"x": np.array([3.0, 3.0])}, 2)
    assert table.factors[0].size == 1
    assert table.labels.tolist() == [[0], [0]]


def test_no_columns() -> None:
    table = FactorTable.of({}, 5)
    assert table.factors == ()
    assert table.places.shape == table.labels.shape == (5, 0)


def test_bad_columns() -> None:
    with pytest.raises(ValueError, match="factor x has no value in any row"):
        FactorTable.of({"x": np.array([NAN, NAN])}, 2)
    with pytest.raises(ValueError, match="no factor y to call categorical, only x"):
        FactorTable.of({"x": np.array([1.0])}, 1, {"y": "categorical"})
    with pytest.raises(ValueError, match="factor_bins must be 2 or more, not 1"):
        FactorTable.of({}, 1, bins=1)


def test_cells_are_numbers_only_if_all_are() -> None:
    assert np.array_equal(typed("x", ["1", "", "2.5"], "t"), [1, NAN, 2.5], equal_nan=True)
    assert typed("x", ["1", "", "two"], "t").tolist() == ["1", "", "two"]
    with pytest.raises(ValueError, match="t: column x holds inf in row 2: give a finite number"):
        typed("x", ["1", "inf"], "t")
    with pytest.warns(UserWarning, match="t: 1 cells of column x are NaN; they count as not observed"):
        assert np.isnan(typed("x", ["1", "nan", ""], "t")).tolist() == [False, True, True]
