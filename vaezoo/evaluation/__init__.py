"""Scores of a trained model from one pool of images, encoded once."""

from vaezoo.evaluation.encoded import Encoded, EvaluationData
from vaezoo.evaluation.scores import Evaluation, Result, evaluate

__all__ = ["Encoded", "Evaluation", "EvaluationData", "Result", "evaluate"]
