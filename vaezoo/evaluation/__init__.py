"""Scores of a trained model from one pool of images, encoded once."""

from vaezoo.evaluation.scores import Evaluation, Result, evaluate
from vaezoo.metrics.encoded import Encoded
from vaezoo.metrics.protocols import EvaluationData

__all__ = ["Encoded", "Evaluation", "EvaluationData", "Result", "evaluate"]
