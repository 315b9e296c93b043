"""Scores of data whose factors are continuous, in part unknown, or not there at all."""

from typing import Any

import numpy as np
import pytest
import torch

from datamodules.factor_table import FactorTable
from datamodules.tabled import TabledDataModule
from tests.helpers.toy import Numbered
from vaezoo.evaluation.scores import evaluate
from vaezoo.metrics import functional
from vaezoo.models import VAE, BetaVAE, LaRVAE
from vaezoo.nn.networks import DenseNetwork
from vaezoo.pictures.matrices import matrices

TOTAL = 120
DRAWN = np.random.default_rng(0)
X, NAME = DRAWN.random(TOTAL), np.where(DRAWN.random(TOTAL) < 0.5, "a", "b")
GAPS = np.arange(TOTAL) % 4 == 0
NETWORK = DenseNetwork((8,), (8,))


class Own(TabledDataModule):
    """120 pictures of 1×1×2 with the given columns."""

    image_shape = (1, 1, 2)

    def __init__(self, columns: dict[str, Any], **options: Any) -> None:
        self.table = FactorTable.of(columns, TOTAL, bins=5)
        self.factors = self.table.factors
        super().__init__(val_size=0, test_size=0, **options)
        self.setup()

    def open(self) -> Numbered:
        return Numbered(TOTAL)


def scores(model: VAE, data: Own, *names: str) -> dict[str, float]:
    found = evaluate(model.eval(), data, names, split="all", resamples=0)
    return {name: score for result in found.results.values() for name, score in result.scores.items()}


def codes(model: VAE, data: Own) -> np.ndarray:
    x = data.pictures.images(torch.arange(TOTAL)).float() * (1 / 255)
    return model.eval().represent(x).double().numpy()


def test_numbers_are_binned_for_scores_that_need_bins_alone() -> None:
    data, model = (
        Own({"x": X, "name": NAME}),
        BetaVAE((1, 1, 2), 1, network=NETWORK),
    )  # one latent: no two alike, whose gap is 0
    z, kind = codes(model, data), (NAME == "b").astype(float)
    edges = np.linspace(X.min(), X.max(), 6)
    bins = np.stack([np.digitize(X, edges[1:-1]), kind], axis=1)
    found = scores(model, data, "mig_20", "sap_dip", "sap_reference")
    assert found["mig_20"] == pytest.approx(functional.mig(z, bins)["mig_20"], abs=1e-6)
    assert found["mig_20"] > 0.01
    exact = functional.sap(z, np.stack([X, kind], axis=1), categorical=(1,))["sap_dip"]
    assert found["sap_dip"] == pytest.approx(exact, abs=1e-5)
    assert found["sap_dip"] != pytest.approx(functional.sap(z, bins, categorical=(1,))["sap_dip"], abs=1e-5)
    assert found["sap_reference"] == pytest.approx(functional.sap_svm(z, bins)["sap_reference"], abs=1e-6)


def test_images_whose_factors_are_not_known_count_nowhere() -> None:
    data, model = (
        Own({"x": np.where(GAPS, np.nan, X), "name": NAME}),
        BetaVAE((1, 1, 2), 1, network=NETWORK),
    )  # one latent: no two alike, whose gap is 0
    known = data.factors_of(torch.arange(TOTAL)).numpy()[~GAPS]
    assert known.min() == 0
    expected = functional.mig(codes(model, data)[~GAPS], known)["mig_20"]
    assert scores(model, data, "mig_20")["mig_20"] == pytest.approx(expected, abs=1e-6)
    assert expected > 0.01


def test_the_distance_of_labels_is_that_of_known_ones() -> None:
    data = Own({"x": np.where(GAPS, np.nan, X)}, labels=1.0)
    model = LaRVAE((1, 1, 2), 1, 2, network=NETWORK)
    x = data.pictures.images(torch.arange(TOTAL)).float() * (1 / 255)
    expected = (model.eval().infer_labels(x) - data.labels_of(torch.arange(TOTAL))).abs()[~GAPS].mean()
    assert scores(model, data, "label_distance")["label_distance"] == pytest.approx(float(expected), abs=1e-6)


def test_without_factors_what_reads_none_is_scored() -> None:
    data, model = Own({}), BetaVAE((1, 1, 2), 3, network=NETWORK).eval()
    found = evaluate(model, data, split="all", resamples=0)
    assert {"kl", "active_units", "reconstruction_error_squared"} <= set(found.results)
    assert found.skipped["mig_20"] == "the data has no factors to compare codes with"
    with pytest.raises(ValueError, match="mig_20 does not fit: the data has no factors"):
        evaluate(model, data, ["mig_20"], split="all")


@pytest.mark.parametrize("options", [{}, {"observed": 0.5}, {"label_form": "onehot"}, {"label_form": "index"}])
def test_without_factors_batches_have_no_labels(options: dict[str, Any]) -> None:
    data = Own({}, batch_size=8, **options)
    assert (data.label_size, data.label_sizes) == (0, ())
    for batch in (next(iter(data.train_dataloader())), data._evaluation_batch(torch.arange(8), 0)):
        assert batch.y.shape == (8, 0)
        assert not batch.labelled.any()


def test_matrices_of_codes_without_factors_are_the_covariance() -> None:
    found = matrices(torch.randn(20, 2), torch.empty(20, 0, dtype=torch.long), (), (), "toy")
    assert list(found) == ["covariance"]
