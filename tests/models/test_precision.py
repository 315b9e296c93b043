"""Every precision of the Trainer: losses in float32, finite at the extremes, falling in mixed precision."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Callback
from torch import Tensor

from tests.helpers.zoo import MODELS, SHAPE, Make, a_batch, in_order, models, trainer
from vaezoo.models.base import VAE
from vaezoo.nn.latents import Concrete, Gaussian
from vaezoo.types import Batch, Forward, Posterior

ROWS = 8
precisions = pytest.mark.parametrize("precision", [None, torch.bfloat16, torch.float16], ids=str)


def at(precision: torch.dtype | None) -> AbstractContextManager[object]:
    return torch.autocast("cpu", precision) if precision else nullcontext()


def a_labelled_batch(model: VAE) -> Batch:
    batch = a_batch(ROWS, observed=5)
    if any(term.supervised for term in model._terms().values()):
        batch.labelled[4:], batch.y[:4], batch.y[4:] = True, torch.nan, batch.x[4:, 0, 0, :3]
    return batch


@models
@precisions
def test_what_losses_read_is_float32(make: Make, precision: torch.dtype | None) -> None:
    model = make()
    with at(precision):
        out = model(a_labelled_batch(model))
        terms = model.terms(a_labelled_batch(model))
    read = [out.reconstruction, *out.labels, *out.sample.values(), *(q.kl() for q in out.posterior.values())]
    assert {x.dtype for x in read} == {torch.float32}
    assert {x.dtype for term in terms.values() for x in (term.loss,)} == {torch.float32}


def signs(like: Tensor) -> Tensor:
    """+1 and −1 in turns, in rows and in columns."""
    rows, columns = (torch.arange(size) for size in like.shape)
    return 1.0 - 2.0 * ((rows[:, None] + columns) % 2)


def extreme(q: Posterior, leaves: list[Tensor]) -> Posterior:
    """Means of ±100 with log-variances of ±30, or logits of ±10,000: one class has all."""
    if isinstance(q, Gaussian):
        leaves += [100 * signs(q.mean), 30 * signs(q.mean).roll(1, 0)]
        return replace(q, mean=leaves[-2].requires_grad_(), logvar=leaves[-1].requires_grad_())
    assert isinstance(q, Concrete)
    logits = tuple((1e4 * signs(x)).requires_grad_() for x in q.logits)
    leaves += logits
    return replace(q, logits=logits)


@models
@precisions
@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian", "laplace"])
def test_losses_and_gradients_are_finite_at_the_extremes(
    make: Make, precision: torch.dtype | None, likelihood: str
) -> None:
    torch.manual_seed(0)
    model, leaves = make(), list[Tensor]()
    model.likelihood = likelihood  # type: ignore[assignment]
    batch = a_labelled_batch(model)
    whole = model(batch)
    posterior = {name: extreme(q, leaves) for name, q in whole.posterior.items()}
    pixels = (1e4 * signs(whole.reconstruction.flatten(1))).requires_grad_()
    labels = tuple((1e4 * signs(x)).requires_grad_() for x in whole.labels)
    leaves += [pixels, *labels]
    sample = {name: q.rsample() for name, q in posterior.items()}
    out = Forward(posterior, sample, pixels.reshape(ROWS, *SHAPE), labels, whole.encode)
    model.forward = lambda _: out  # type: ignore[method-assign]
    with at(precision):
        terms = model.terms(batch)
    assert all(x.isfinite() for term in terms.values() for x in (term.loss, *term.logs.values())), terms
    torch.stack([term.loss for term in terms.values()]).sum().backward()
    gradients = [x.grad for x in (*leaves, *model.parameters()) if x.grad is not None]
    assert len(gradients) >= 3
    assert all(gradient.isfinite().all() for gradient in gradients)


@models
def test_mixed_precision_trains(make: Make, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, batch = make(), a_batch(32)
    batch.x[:] = torch.rand(1, *SHAPE).round()
    model.lr = 1e-2
    losses: list[float] = []

    class Keep(Callback):
        def on_train_batch_end(self, _: object, __: object, outputs: dict[str, Tensor], *___: object) -> None:
            losses.append(outputs["loss"].item())

    options = {"precision": "bf16-mixed", "callbacks": [Keep()], "enable_checkpointing": False}
    trainer(tmp_path, 50, **options).fit(model, in_order([batch] * 50))
    assert len(losses) == 50
    assert torch.tensor(losses).isfinite().all()
    assert sum(losses[-10:]) < sum(losses[:10])


@pytest.mark.parametrize("precision", ["32-true", "16-mixed"])  # Lightning takes bfloat16 for the latter on CPU
def test_other_precisions_train(precision: str, tmp_path: Path) -> None:
    model = MODELS["JointVAE"]()
    trainer(tmp_path, 3, precision=precision, enable_checkpointing=False).fit(model, in_order([a_batch()] * 3))
    assert all(p.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_gradients_are_clipped_in_every_precision(precision: str, tmp_path: Path) -> None:
    class Norms(Callback):
        def on_before_zero_grad(self, _: object, model: VAE, __: object) -> None:
            norms.extend([p.grad.norm() for p in model.parameters() if p.grad is not None])

    model, norms = MODELS["BetaVAE"](), list[Tensor]()
    options = {"precision": precision, "gradient_clip_val": 1e-3, "callbacks": [Norms()], "enable_checkpointing": False}
    trainer(tmp_path, 2, **options).fit(model, in_order([a_batch()] * 2))
    assert norms
    assert max(norms) <= 1.001e-3
