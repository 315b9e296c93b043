"""Scores of a trained model from one pool of images."""

from vaezoo.evaluation.encoded import Encoded, EvaluationData

__all__ = ["Encoded", "EvaluationData"]
