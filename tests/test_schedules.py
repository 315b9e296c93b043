import pytest
import torch

from vaezoo.schedules import linear


def test_linear_rises_and_stays() -> None:
    values = [linear(torch.tensor(step), 1.0, 5.0, 4).item() for step in (0, 1, 2, 4, 100)]
    assert values == [1.0, 2.0, 3.0, 5.0, 5.0]


def test_linear_can_fall_and_can_take_no_time() -> None:
    assert linear(torch.tensor(1), 4.0, 0.0, 4).item() == 3.0
    assert linear(torch.tensor(0), 0.0, 7.0, 0).item() == 7.0


def test_linear_refuses_a_negative_length() -> None:
    with pytest.raises(ValueError, match="steps"):
        linear(torch.tensor(0), 0.0, 1.0, -1)
