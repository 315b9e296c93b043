"""Scores of a trained model from one pool of images, encoded once."""

from vaezoo.evaluation.scores import evaluate
from vaezoo.metrics.encoded import Encoded
from vaezoo.metrics.protocols import EvaluationData
from vaezoo.metrics.scoring import Evaluation, Result

__all__ = ["Encoded", "Evaluation", "EvaluationData", "Result", "evaluate"]
