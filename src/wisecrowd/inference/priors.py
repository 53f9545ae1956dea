r"""Priors of worker parameters, as objects.

One object serves every kind of inference. Its parameters are pseudo-counts in EM (MAP under a
Dirichlet with parameters :math:`1 + \alpha`). They are density parameters wherever workers are
integrated out: in mean field through ``posterior``, in belief propagation through ``rule``, and in
simulators through ``sample``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from wisecrowd.core.exceptions import NotFittedError, ParameterError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import LARGEST_NUMBER, check_number
from wisecrowd.core.types import Floats
from wisecrowd.inference.quadrature import (
    Rule,
    affordable,
    as_row,
    beta_rule,
    centred_beta_rule,
    dirichlet_rule,
    enough_nodes,
    product_rule,
    simplex_rule,
)
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.worker_prior import Discrete as Discrete
from wisecrowd.kinds.classes.families.worker_prior import MixturePrior as MixturePrior
from wisecrowd.kinds.classes.families.worker_prior import (
    WorkerPosterior,
    WorkerPrior,
    coin_matrices,
)

# ------------------------------------------------------------------------------------- one coin


@dataclass(frozen=True)
class OneCoinPrior(WorkerPrior):
    r"""Accuracy of a one-coin worker: :math:`p_j \sim Beta(a, b)`.

    Parameters
    ----------
    a, b : float
        Pseudo-counts of correct and wrong labels in EM, Beta parameters elsewhere.

    Examples
    --------
    >>> rule = OneCoinPrior(2, 1).rule(degree=3, n_classes=2)
    >>> round(float(np.exp(rule.log_weight) @ rule.nodes), 6)  # the prior's mean
    0.666667
    """

    a: float = 1.0
    b: float = 0.5

    @property
    def coin(self) -> bool:
        """True: one accuracy describes a worker."""
        return True

    def __post_init__(self) -> None:
        check_number("a", self.a, 0.0)
        check_number("b", self.b, 0.0)

    def map_accuracy(self, correct: Floats, total: Floats) -> Floats:
        """Return the MAP accuracy from correct and total counts; 0.5 without counts and prior."""
        denominator = total + self.a + self.b
        known = denominator > 0
        ratio = (correct + self.a) / np.where(known, denominator, 1.0)
        return np.where(known, ratio, 0.5)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw confusion matrices (n_workers, n_classes, n_classes)."""
        return coin_matrices(rng.beta(self.a, self.b, n_workers), n_classes)

    def rule(
        self, degree: int, n_classes: int, counts: Floats | None = None, size: int = 512
    ) -> Rule:
        """Return accuracies (S,) and log weights, exact for up to about 40 labels."""
        _proper(a=self.a, b=self.b)
        if counts is None or self.exact(degree, n_classes):
            return beta_rule(self.a, self.b, enough_nodes(degree))
        correct = float(np.trace(counts))
        wrong = float(counts.sum()) - correct
        return centred_beta_rule(self.a, self.b, correct, wrong, max(size // 16, 8))

    def exact(self, degree: int, n_classes: int) -> bool:
        """Return whether the Gauss-Jacobi rule has all nodes that the degree requires."""
        return enough_nodes(degree) == (degree + 2) // 2

    def posterior(self, counts: Floats) -> WorkerPosterior:
        """Return the Beta posterior as confusion matrices."""
        from scipy.special import betaln, psi

        _proper(a=self.a, b=self.b)
        K = counts.shape[1]
        correct = np.trace(counts, axis1=1, axis2=2)
        wrong = counts.sum(axis=(1, 2)) - correct
        a, b = self.a + correct, self.b + np.maximum(wrong, 0.0)
        spread = np.log(max(K - 1, 1))
        right, off = psi(a) - psi(a + b), psi(b) - psi(a + b) - spread
        same = np.eye(K, dtype=bool)
        evidence = betaln(a, b) - betaln(self.a, self.b) - wrong * spread
        return WorkerPosterior(
            np.where(same, right[:, None, None], off[:, None, None]),
            coin_matrices(a / (a + b), K),
            evidence,
        )


# -------------------------------------------------------------------------------- Dirichlet rows


@dataclass(frozen=True, eq=False)
class DirichletRows(WorkerPrior):
    r"""Independent Dirichlet rows: :math:`\theta_{jk\cdot} \sim Dir(\alpha_k)`.

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
        except OverflowError:
            alpha = np.array(np.inf)
        if not ((alpha >= 0) & (alpha <= LARGEST_NUMBER)).all():
            raise ParameterError(
                f"alpha must be finite and not negative, and at most {LARGEST_NUMBER:g}."
            )

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

    def _square(self, n_classes: int) -> Floats:
        alpha = self.pseudo_counts((), n_classes)
        _proper(alpha=float(alpha.min()))
        return alpha

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw confusion matrices (n_workers, n_classes, n_classes)."""
        alpha = self._square(n_classes)
        return np.stack([rng.dirichlet(row, n_workers) for row in alpha], axis=1)

    def rule(
        self, degree: int, n_classes: int, counts: Floats | None = None, size: int = 512
    ) -> Rule:
        """Return confusion matrices (S, K, K) and log weights; exact where affordable."""
        return dirichlet_rule(self._square(n_classes), degree, size, counts)

    def exact(self, degree: int, n_classes: int) -> bool:
        """Return whether the product of Gauss-Jacobi rules is small enough to be used."""
        return affordable(degree, n_classes)

    def posterior(self, counts: Floats) -> WorkerPosterior:
        """Return the Dirichlet posterior of every row."""
        from scipy.special import gammaln, psi

        alpha = self.pseudo_counts(counts, counts.shape[1])
        _proper(alpha=float(alpha.min()))
        shape = counts + alpha
        total = shape.sum(axis=2, keepdims=True)

        def log_beta(x: Floats) -> Floats:
            return np.asarray((gammaln(x).sum(axis=-1) - gammaln(x.sum(axis=-1))).sum(axis=-1))

        return WorkerPosterior(
            psi(shape) - psi(total), shape / total, log_beta(shape) - log_beta(alpha)
        )


@dataclass(frozen=True)
class WeakDiagonal:
    """The default prior: ``strength`` on the diagonal and ``strength / n_classes`` elsewhere.

    Under it workers are somewhat better than chance; a few labels outweigh it. Without it, EM on a
    sparse crowd of many classes finds meaningless optima.
    """

    strength: float = 2.0

    def __post_init__(self) -> None:
        check_number("strength", self.strength, 0.0)

    def pseudo_counts(self, workers: Any, n_classes: int) -> Floats:
        """Return the (n_classes, n_classes) pseudo-counts."""
        off = self.strength / n_classes
        return np.full((n_classes, n_classes), off) + (self.strength - off) * np.eye(n_classes)


@dataclass(frozen=True, eq=False)
class History:
    """Estimates of a previous fit as a prior, worth ``strength`` labels in every row.

    Workers unknown to the previous fit get ``otherwise``.

    Parameters
    ----------
    model : fitted method with ``confusion_``
    strength : float
        Weight of the history, in labels of each class.
    """

    model: Any
    strength: float = 10.0
    otherwise: Any = WeakDiagonal()

    def __post_init__(self) -> None:
        check_number("strength", self.strength, 0.0)

    def aligned(self, classes: Any) -> History:
        """Return the same history with its classes in the given order."""
        if getattr(self.model, "confusion_", None) is None:
            raise NotFittedError("The history must be a fitted method that has confusion_.")
        known = self.model.classes_
        order = lookup(np.asarray(classes), known)
        if (order < 0).any() or len(order) != len(known):
            raise ParameterError(
                f"The history's classes ({describe_ids(known)}) are not those of the labels "
                f"({describe_ids(classes)}); declare the same classes for both."
            )
        confusion = self.model.confusion_[:, order][:, :, order]
        model = SimpleNamespace(
            workers_=self.model.workers_, classes_=known[order], confusion_=confusion
        )
        return replace(self, model=model)

    def pseudo_counts(self, workers: Any, n_classes: int) -> Floats:
        """Return the (n_workers, n_classes, n_classes) pseudo-counts, with aligned classes."""
        confusion = self.model.confusion_
        base = self.otherwise.pseudo_counts(workers, n_classes)
        alpha = np.array(np.broadcast_to(base, (len(workers), n_classes, n_classes)))
        rows = lookup(np.asarray(workers), self.model.workers_)
        known = rows >= 0
        alpha[known] = self.strength * confusion[rows[known]]
        return alpha


@dataclass(frozen=True)
class TwoCoin(WorkerPrior):
    r"""Two classes, each with its own accuracy: independent Betas.

    Parameters
    ----------
    a0, b0 : float
        Beta parameters of the probability of label 0 on class 0 (specificity).
    a1, b1 : float
        Beta parameters of the probability of label 1 on class 1 (sensitivity).
    """

    a0: float = 2.0
    b0: float = 1.0
    a1: float = 2.0
    b1: float = 1.0

    def __post_init__(self) -> None:
        for name in ("a0", "b0", "a1", "b1"):
            check_number(name, getattr(self, name), 0.0)

    def _rows(self, n_classes: int) -> DirichletRows:
        if n_classes != 2:
            raise ParameterError(
                f"A two-coin prior is for two classes and there are {n_classes}; use DirichletRows."
            )
        return DirichletRows([[self.a0, self.b0], [self.b1, self.a1]])

    def pseudo_counts(self, workers: Any, n_classes: int) -> Floats:
        """Return the (2, 2) pseudo-counts."""
        return self._rows(n_classes).pseudo_counts(workers, n_classes)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw confusion matrices (n_workers, 2, 2)."""
        return self._rows(n_classes).sample(n_workers, n_classes, rng)

    def rule(
        self, degree: int, n_classes: int, counts: Floats | None = None, size: int = 512
    ) -> Rule:
        """Return the tensor product of two Gauss-Jacobi rules, exact up to about 40 labels."""
        rows = self._rows(n_classes)
        if counts is None or self.exact(degree, n_classes):
            n_nodes = min(enough_nodes(degree), 32)
            return product_rule([simplex_rule(row, n_nodes) for row in rows._square(2)])
        n_nodes = max(size // 32, 8)
        return product_rule(
            [
                as_row(centred_beta_rule(row[0], row[1], seen[0], seen[1], n_nodes))
                for row, seen in zip(rows._square(2), counts, strict=True)
            ]
        )

    def exact(self, degree: int, n_classes: int) -> bool:
        """Return whether the product rule has all nodes that the degree requires."""
        return enough_nodes(degree) == (degree + 2) // 2

    def posterior(self, counts: Floats) -> WorkerPosterior:
        """Return the two Beta posteriors."""
        return self._rows(counts.shape[1]).posterior(counts)


def _proper(**parameters: float) -> None:
    """Raise an error for density parameters that are not positive."""
    for name, value in parameters.items():
        if not value > 0:
            raise ParameterError(f"{name} is {value!r}; as a density it must be above 0.")


def as_row_prior(prior: Any, classes: Any = None) -> Any:
    """Return a prior of confusion rows from "weak", None, a number, an array or a prior object.

    ``classes`` are the ids of the labels' classes, to which a history is aligned.
    """
    if isinstance(prior, History):
        return prior.aligned(classes)
    if prior is None:
        return DirichletRows(0.0)
    if isinstance(prior, str):
        if prior != "weak":
            allowed = for_reader(
                "'weak', None, a number, an array or a prior object",
                "weak, none, a number or a matrix such as [[3,1],[1,3]]",
            )
            raise ParameterError(f"prior is {prior!r}; give {allowed}.")
        return WeakDiagonal()
    return prior if hasattr(prior, "pseudo_counts") else DirichletRows(prior)


def pseudo_counts(prior: Any, labels: CrowdLabels) -> Floats:
    """Return the pseudo-counts (K, L) or (J, K, L) of a prior of confusion rows for a crowd."""
    found: Floats = as_row_prior(prior, labels.classes).pseudo_counts(
        labels.workers, labels.n_classes
    )
    return found


def as_coin_prior(prior: Any) -> OneCoinPrior:
    """Return a one-coin prior from "weak", None, (a, b) or a OneCoinPrior."""
    if prior is None:
        return OneCoinPrior(0.0, 0.0)
    if isinstance(prior, str) and prior == "weak":
        return OneCoinPrior()
    if isinstance(prior, tuple | list) and len(prior) == 2:
        return OneCoinPrior(*prior)
    if isinstance(prior, OneCoinPrior):
        return prior
    allowed = for_reader(
        "'weak', None, a pair (a, b) or a OneCoinPrior", "weak, none or a pair [a,b]"
    )
    raise ParameterError(f"prior is {prior!r}; give {allowed}.")


def as_worker_prior(prior: Any) -> WorkerPrior:
    """Return a density over workers from "weak", (a, b), an array of alpha or a prior object."""
    if isinstance(prior, WorkerPrior):
        return prior
    if isinstance(prior, str) and prior == "weak":
        return OneCoinPrior(2.0, 1.0)
    if isinstance(prior, tuple) and len(prior) == 2:
        return OneCoinPrior(*prior)
    if prior is not None and not isinstance(prior, str) and np.ndim(prior) >= 2:
        return DirichletRows(prior)
    allowed = for_reader(
        "'weak', a pair (a, b), a matrix of Dirichlet parameters or a prior object such as "
        "OneCoinPrior(2, 1)",
        "weak or a matrix of Dirichlet parameters such as [[3,1],[1,3]]",
    )
    raise ParameterError(f"prior is {prior!r}; give {allowed}.")
