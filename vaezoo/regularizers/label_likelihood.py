"""Likelihood of labels that share the latents with the image."""

import torch
from torch import Tensor

from vaezoo.distributed import gather
from vaezoo.functional import observed_labels
from vaezoo.regularizers.base import Regularizer
from vaezoo.types import Batch, Forward, Term


class LabelLikelihood(Regularizer):
    """−γ Σ_j log p(y_j|z) of the labels that the decoder predicts (Margonis et al., 2020, Eq. 3).

    Unobserved labels are ignored: each label's cross-entropy is averaged over the rows that observe it, so γ keeps its
    meaning at any share of labels. If all are observed, this is the paper's term. Also logs accuracies, decoded from
    the sample in training and from its mode in evaluation.

    Args:
        gamma: Weight.
        first: Training batches at the start in which it has another weight (beyond the paper).
        first_gamma: That weight.
    """

    reads_labels = True

    def __init__(self, gamma: float = 1.0, first: int = 0, first_gamma: float = 1.0) -> None:
        super().__init__()
        self.gamma, self.first, self.first_gamma = gamma, first, first_gamma

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """γ times the sum over labels of the mean cross-entropy."""
        if not out.labels:
            raise ValueError("the model decodes no labels; LabelLikelihood needs one that does, such as WeLaVAE")
        sizes = [logits.shape[1] for logits in out.labels]
        # Ranks may hold different numbers of labels: the mean over observed rows is not linear in the batch.
        logits = gather(torch.cat(out.labels, dim=1)).split(sizes, dim=1)
        y, observed = observed_labels(gather(batch.y), sizes)
        rows = observed.sum(0).clamp(min=1)
        nats, hits = [], []
        for predicted, label in zip(logits, y.split(sizes, dim=1), strict=True):
            nats.append(-(label * predicted.log_softmax(1)).sum(1))  # 0 where unobserved, and no gradient
            hits.append(predicted.argmax(1) == label.argmax(1))
        total = (torch.stack(nats, dim=1).sum(0) / rows).sum()
        accuracy = (torch.stack(hits, dim=1) & observed).sum(0) / rows
        logs = {"nats": total} | {f"accuracy_{j}": a for j, a in enumerate(accuracy)}
        if not self.training or not self.first:
            return Term(self.gamma * total, logs)
        return Term(torch.where(step < self.first, self.first_gamma, self.gamma) * total, logs)
