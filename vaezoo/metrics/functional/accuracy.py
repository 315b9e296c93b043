"""Accuracies and distances between what a model infers and the labels."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from vaezoo.metrics.functional.pool import Labels, Pool, Scores, as_codes, hold_out, varying


def label_distance(predictions: ArrayLike, labels: ArrayLike) -> Scores:
    """Euclidean distance of inferred and true labels, averaged over examples (LaRVAE's ℓ2).

    `label_distance_0` and so on are the root mean squared errors of single labels.

    Args:
        predictions: Inferred labels (N, K).
        labels: True labels (N, K).
    """
    guess, truth = as_codes(predictions, 1, "predictions"), as_codes(labels, 1, "labels")
    if guess.shape != truth.shape:
        raise ValueError(f"predictions {guess.shape} and labels {truth.shape} must have one shape")
    squares = (guess - truth) ** 2
    each = {f"label_distance_{k}": float(error) for k, error in enumerate(np.sqrt(squares.mean(axis=0)))}
    return {"label_distance": float(np.sqrt(squares.sum(axis=1)).mean()), **each}


def reconstruction_error(errors: ArrayLike, *, variant: Literal["squared", "bernoulli"] = "squared") -> Scores:
    """Mean reconstruction error per pixel and channel.

    Args:
        errors: Mean error of each example (N, 1).
        variant: Name of the error.
    """
    return {f"reconstruction_error_{variant}": float(as_codes(errors, 1, "errors").mean())}


def class_accuracy(classes: ArrayLike, labels: ArrayLike) -> Scores:
    """Share of examples whose most probable class equals their label.

    Args:
        classes: Class probabilities (N, C), or chosen classes (N,).
        labels: Labels (N,).
    """
    chosen, truth = _chosen(classes, labels)
    return {"class_accuracy": float((chosen == truth).mean())}


def cluster_accuracy(classes: ArrayLike, labels: ArrayLike) -> Scores:
    """Share of examples whose cluster is matched with their label by the best one-to-one map (Kuhn, 1955).

    Args:
        classes: Cluster probabilities (N, C), or chosen clusters (N,).
        labels: Labels (N,).
    """
    chosen, truth = _chosen(classes, labels)
    clusters, cluster = np.unique(chosen, return_inverse=True)
    values, value = np.unique(truth, return_inverse=True)
    together = np.bincount(cluster.reshape(-1) * len(values) + value.reshape(-1), minlength=clusters.size * values.size)
    together = together.reshape(clusters.size, values.size)
    return {"cluster_accuracy": float(together[linear_sum_assignment(together, maximize=True)].sum() / len(truth))}


def _chosen(classes: ArrayLike, labels: ArrayLike) -> tuple[Labels, Labels]:
    table, truth = np.asarray(classes), np.asarray(labels)
    truth = truth[:, 0] if truth.ndim == 2 and truth.shape[1] == 1 else truth
    if table.ndim not in (1, 2) or truth.ndim != 1 or len(table) != len(truth) or not len(truth):
        raise ValueError(f"classes {table.shape} must be (N, C) or (N,), and labels {truth.shape} (N,), N at least 1")
    if not np.isfinite(table).all():
        raise ValueError("classes holds NaN or infinity: check the model that produced them")
    return table.argmax(axis=1) if table.ndim == 2 else table.astype(np.int64), truth.astype(np.int64)


def attribute_accuracy(
    codes: ArrayLike,
    attributes: ArrayLike,
    *,
    test: Pool,
    attribute_names: Sequence[str] = (),
) -> Scores:
    """Test accuracy of binary attributes along the difference of class means (Kumar et al., 2018, Table 2).

    Directions and biases are fitted on training images. The bias minimises the hinge loss exactly: its slope rises by
    one at each of the points y - s, from minus the number of positives, so the minimum lies between the two middle
    ones of that rank.

    Args:
        codes: Codes of training images (N, D).
        attributes: Their attributes (N, K) of two values each; the greater one is positive.
        test: Codes and attributes of the images to score on.
        attribute_names: Names of the attributes, used in the score names. Defaults to numbers from 0.
    """
    part = hold_out(codes, attributes, test)
    if part.labels.max() > 1:
        raise ValueError("attributes must have two values each: pass one column for each value of a category")
    positives = part.labels.sum(axis=0)  # (K,)
    mean = part.labels.T @ part.codes / positives[:, None]
    other = (1 - part.labels).T @ part.codes / (len(part.codes) - positives)[:, None]
    direction = (mean - other).T  # (D, K)
    kinks = np.sort(2 * part.labels - 1 - part.codes @ direction, axis=0)
    columns = np.arange(len(positives))
    bias = (kinks[positives - 1, columns] + kinks[positives, columns]) / 2
    right = (part.test_codes @ direction + bias > 0) == part.test_labels
    names = attribute_names or range(np.shape(attributes)[1])
    kept = [name for name, moves in zip(names, varying(as_codes(attributes)), strict=True) if moves]
    each = {f"attribute_accuracy_{k}": float(share) for k, share in zip(kept, right.mean(axis=0), strict=True)}
    return {"attribute_accuracy": float(right.mean()), **each}


def label_accuracy(classes: ArrayLike, labels: ArrayLike, *, label_names: Sequence[str] = ()) -> Scores:
    """Accuracy of each decoded label, and the mean over labels (WeLa-VAE, Table 1).

    Args:
        classes: Decoded class of each label (N, L).
        labels: True classes (N, L). NaN labels are unobserved and ignored.
        label_names: Names of the labels, used in the score names. Defaults to numbers from 0.
    """
    guess, truth = as_codes(classes, 1, "classes"), np.asarray(labels, dtype=np.float64)
    if guess.shape != truth.shape:
        raise ValueError(f"classes {guess.shape} and labels {truth.shape} must have one shape")
    observed = (~np.isnan(truth)).sum(axis=0)
    if not observed.all():
        raise ValueError(f"no image shows label {int(observed.argmin())}: score images whose labels are observed")
    shares = (guess == truth).sum(axis=0) / observed
    names = label_names or range(len(shares))
    each = {f"label_accuracy_{name}": float(share) for name, share in zip(names, shares, strict=True)}
    return {"label_accuracy": float(shares.mean()), **each}


def label_order(codes: ArrayLike, labels: ArrayLike, *, label_names: Sequence[str] = ()) -> Scores:
    """Share of labels whose classes lie in order along a latent, as bins of a number should (WeLa-VAE, Section 4.3).

    Each label is read from the latent of the highest correlation ratio: variance of its class means over its variance.
    The classes are in order if these means rise, or fall, from the first class to the last.

    Args:
        codes: Codes (N, D).
        labels: Classes of labels (N, L), numbered in order. NaN labels are unobserved and ignored.
        label_names: Names of the labels, used in the score names. Defaults to numbers from 0.
    """
    z, truth = as_codes(codes), np.asarray(labels, dtype=np.float64)
    if truth.ndim != 2 or len(truth) != len(z):
        raise ValueError(f"codes {z.shape} and labels {truth.shape} must be (N, D) and (N, L)")
    each = {}
    for name, label in zip(label_names or range(truth.shape[1]), truth.T, strict=True):
        known = ~np.isnan(label)
        classes, index, counts = np.unique(label[known], return_inverse=True, return_counts=True)
        if len(classes) < 2:
            raise ValueError(f"label {name} has fewer than two observed classes: score images that show more of them")
        centred = z[known] - z[known].mean(axis=0)
        means = np.eye(len(classes))[index].T @ centred / counts[:, None]  # (C, D)
        variance = (centred**2).sum(axis=0)
        ratio = np.divide(counts @ means**2, variance, out=np.zeros(z.shape[1]), where=variance > 0)
        steps = np.diff(means[:, ratio.argmax()])
        each[f"label_order_{name}"] = float((steps > 0).all() or (steps < 0).all())
    return {"label_order": float(np.mean(list(each.values()))), **each}
