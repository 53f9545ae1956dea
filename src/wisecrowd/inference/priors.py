r"""What is believed of workers before their labels, as objects.

In EM the parameters are pseudo-counts (MAP under a Dirichlet with parameters :math:`1 + \alpha`);
methods that integrate read them as density parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.encoding import lookup
from wisecrowd.core.exceptions import NotFittedError, ParameterError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DirichletRows:
    r"""Independent Dirichlet rows of the confusion matrix: :math:`\theta_{jk\cdot} \sim Dir(\alpha_k)`.

    Parameters
    ----------
    alpha : float, (n_classes, n_classes) or (n_workers, n_classes, n_classes)
        A number is used for every entry.

    Examples
    --------
    >>> DirichletRows([[3, 1], [1, 3]]).pseudo_counts(workers=None, n_classes=2)
    array([[3., 1.],
           [1., 3.]])
    """

    alpha: Any = 1.0

    def __post_init__(self) -> None:
        try:
            alpha = np.asarray(self.alpha, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError(f"alpha is {self.alpha!r}; give a number or an array.") from None
        if not np.isfinite(alpha).all() or (alpha < 0).any():
            raise ParameterError("alpha must be finite and not negative.")

    def pseudo_counts(self, workers: Any, n_classes: int) -> Floats:
        """Return alpha as (n_classes, n_classes), or with one such matrix per worker in front."""
        alpha = np.asarray(self.alpha, dtype=np.float64)
        square = (n_classes, n_classes)
        if alpha.ndim <= 2 and alpha.shape not in ((), square):
            raise ParameterError(f"alpha has shape {alpha.shape}; for these classes give {square}.")
        if alpha.ndim > 2 and alpha.shape != (len(workers), *square):
            raise ParameterError(
                f"alpha has shape {alpha.shape}; there are {len(workers)} workers and "
                f"{n_classes} classes."
            )
        return np.array(np.broadcast_to(alpha, square)) if alpha.ndim < 2 else alpha


@dataclass(frozen=True)
class WeakDiagonal:
    """The default: ``strength`` on the diagonal and ``strength / n_classes`` elsewhere.

    It says that workers are somewhat better than chance, and is soon outweighed by labels. Without
    it, EM on a sparse crowd of many classes finds meaningless optima.
    """

    strength: float = 2.0

    def pseudo_counts(self, workers: Any, n_classes: int) -> Floats:
        """Return the (n_classes, n_classes) pseudo-counts."""
        off = self.strength / n_classes
        return np.full((n_classes, n_classes), off) + (self.strength - off) * np.eye(n_classes)


@dataclass(frozen=True, eq=False)
class History:
    """What a former fit knew of these workers: its confusion matrices as ``strength`` labels per row.

    Workers that the former fit did not know get ``otherwise``.

    Parameters
    ----------
    model : fitted method with ``confusion_``
    strength : float
        How many labels of each class the history is worth.
    """

    model: Any
    strength: float = 10.0
    otherwise: Any = WeakDiagonal()

    def pseudo_counts(self, workers: Any, n_classes: int) -> Floats:
        """Return the (n_workers, n_classes, n_classes) pseudo-counts."""
        confusion = getattr(self.model, "confusion_", None)
        if confusion is None:
            raise NotFittedError("The history must be a fitted method that has confusion_.")
        if confusion.shape[1] != n_classes:
            raise ParameterError(
                f"The history has {confusion.shape[1]} classes and the labels have {n_classes}; "
                "declare the same classes for both."
            )
        base = self.otherwise.pseudo_counts(workers, n_classes)
        alpha = np.array(np.broadcast_to(base, (len(workers), n_classes, n_classes)))
        rows = lookup(np.asarray(workers), self.model.workers_)
        known = rows >= 0
        alpha[known] = self.strength * confusion[rows[known]]
        return alpha


def as_row_prior(prior: Any) -> Any:
    """Return a prior of confusion rows from "weak", None, a number, an array or a prior object."""
    if prior is None:
        return DirichletRows(0.0)
    if isinstance(prior, str):
        if prior != "weak":
            raise ParameterError(
                f"prior is {prior!r}; give 'weak', None, a number, an array or a prior object."
            )
        return WeakDiagonal()
    return prior if hasattr(prior, "pseudo_counts") else DirichletRows(prior)


@dataclass(frozen=True)
class OneCoin:
    r"""Accuracy of a one-coin worker: :math:`p_j \sim Beta(a, b)`.

    Parameters
    ----------
    a, b : float
        Pseudo-counts of correct and wrong labels.
    """

    a: float = 1.0
    b: float = 0.5

    def __post_init__(self) -> None:
        for name, value in (("a", self.a), ("b", self.b)):
            if not np.isfinite(value) or value < 0:
                raise ParameterError(f"{name} is {value!r}; give a finite number of at least 0.")

    def map_accuracy(self, correct: Floats, total: Floats) -> Floats:
        """Return the MAP accuracy from expected correct and total counts; 0.5 if nothing is known."""
        denominator = total + self.a + self.b
        known = denominator > 0
        ratio = (correct + self.a) / np.where(known, denominator, 1.0)
        return np.where(known, ratio, 0.5)


def as_coin_prior(prior: Any) -> OneCoin:
    """Return a one-coin prior from "weak", None, (a, b) or a OneCoin."""
    if prior is None:
        return OneCoin(0.0, 0.0)
    if isinstance(prior, str) and prior == "weak":
        return OneCoin()
    if isinstance(prior, tuple | list) and len(prior) == 2:
        return OneCoin(float(prior[0]), float(prior[1]))
    if isinstance(prior, OneCoin):
        return prior
    raise ParameterError(f"prior is {prior!r}; give 'weak', None, a pair (a, b) or a OneCoin.")
