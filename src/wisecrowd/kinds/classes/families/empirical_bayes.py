r"""Empirical Bayes: the parameters of a prior, fitted to the workers' posteriors.

Where the workers' posteriors have expected logarithms, as in mean field, :func:`fit_prior` takes
the step

.. math:: \eta' = \arg\max_\eta \sum_j E_{q(\theta_j)} \log p(\theta_j \mid \eta),

which never lowers the evidence or its bound. A prior consists of *kinds*: a Beta or Dirichlet
density is one kind, an atom of a discrete prior is one, and a mixture has the kinds of its parts,
in order. The step needs only two sums per kind, which add up over workers.

Where only the evidence itself is available, as in belief propagation, :func:`maximise_evidence`
maximises it directly. (A rule that is exact for polynomials is inaccurate for logarithms.)
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.types import Floats
from wisecrowd.inference.priors import DirichletRows, Discrete, MixturePrior, OneCoinPrior, TwoCoin
from wisecrowd.inference.quadrature import INSIDE
from wisecrowd.kinds.classes.families.worker_prior import WorkerPrior

SMALLEST, LARGEST = 0.02, 1000.0  # bounds of fitted parameters; few workers may lead to 0 or ∞
MOST_NEWTON_STEPS = 50
ENOUGH = 1e-9  # least number of workers of a kind that is fitted


class KindSums(NamedTuple):
    """Sufficient statistics of the workers for the kinds of a prior.

    Attributes
    ----------
    weight : (F,) expected number of workers of each kind
    log_confusion : (F, K, K) their expected log confusion matrices, summed
    """

    weight: Floats
    log_confusion: Floats


def n_kinds(prior: WorkerPrior) -> int:
    """Return the number of kinds of worker that a prior distinguishes.

    Examples
    --------
    >>> n_kinds(MixturePrior([OneCoinPrior(9, 1), Discrete([0.5, 0.1])]))
    3
    """
    if isinstance(prior, MixturePrior):
        return sum(n_kinds(part) for part in prior.parts)
    return len(prior.atoms) if isinstance(prior, Discrete) else 1


def fittable(prior: WorkerPrior, n_classes: int) -> WorkerPrior:
    """Return the prior nearest to ``prior`` among those that :func:`fit_prior` searches.

    Dirichlet rows get one parameter on the diagonal and one elsewhere, because a crowd has too few
    workers to estimate more.

    Examples
    --------
    >>> fittable(DirichletRows([[3, 1], [2, 5]]), n_classes=2).alpha
    array([[4. , 1.5],
           [1.5, 4. ]])
    """
    if isinstance(prior, MixturePrior):
        return MixturePrior([fittable(part, n_classes) for part in prior.parts], prior.weights)
    if isinstance(prior, DirichletRows):
        return _tied_rows(*_tied_pair(prior, n_classes), n_classes)
    if isinstance(prior, OneCoinPrior | TwoCoin | Discrete):
        return prior
    raise ParameterError(
        f"The parameters of a {type(prior).__name__} cannot be fitted; use OneCoinPrior, TwoCoin, "
        "DirichletRows, Discrete or a MixturePrior of these."
    )


def fit_prior(prior: WorkerPrior, sums: KindSums) -> WorkerPrior:
    """Return the prior of the same family under which the workers are most probable.

    Parameters
    ----------
    prior : OneCoinPrior, TwoCoin, DirichletRows, Discrete or a MixturePrior of these
        The fitted parameters of Discrete are the weights; those of a MixturePrior, weights and
        parts.
    sums : KindSums
        Statistics, for example from :func:`sums_from_counts`.

    Examples
    --------
    >>> p = np.random.default_rng(0).beta(6, 2, 5000)
    >>> confusion = np.array([[p, 1 - p], [1 - p, p]])
    >>> sums = KindSums(np.array([5000.0]), np.log(confusion).sum(axis=2)[None])
    >>> fitted = fit_prior(OneCoinPrior(), sums)
    >>> round(fitted.a), round(fitted.b)
    (6, 2)
    """
    total = sums.weight.sum()
    if isinstance(prior, MixturePrior):
        bounds = np.cumsum([0, *(n_kinds(part) for part in prior.parts)])
        own = [KindSums(*(x[a:b] for x in sums)) for a, b in pairwise(bounds)]
        parts = [fit_prior(part, mine) for part, mine in zip(prior.parts, own, strict=True)]
        shares = np.array([mine.weight.sum() for mine in own])
        return MixturePrior(parts, shares / total if total > ENOUGH else prior.weights)
    if total <= ENOUGH:
        return prior
    if isinstance(prior, Discrete):
        return Discrete(prior.atoms, sums.weight / total)
    return _refit_density(prior, sums.log_confusion[0] / total)


def _refit_density(prior: WorkerPrior, mean_log: Floats) -> WorkerPrior:
    """Fit one Beta or Dirichlet to the workers' mean expected log confusion (K, K)."""
    K = len(mean_log)
    if K == 1:
        return prior  # every label is right: nothing to fit
    right = float(np.trace(mean_log)) / K
    wrong = (float(mean_log.sum()) - K * right) / K  # sum over the wrong labels of a row
    if isinstance(prior, OneCoinPrior):
        off = wrong / (K - 1) + np.log(K - 1)  # E log(1 - p)
        return OneCoinPrior(*_fit_tied((prior.a, prior.b), right, off, 1))
    if isinstance(prior, TwoCoin):
        first = _fit_tied((prior.a0, prior.b0), mean_log[0, 0], mean_log[0, 1], 1)
        return TwoCoin(*first, *_fit_tied((prior.a1, prior.b1), mean_log[1, 1], mean_log[1, 0], 1))
    if isinstance(prior, DirichletRows):
        return _tied_rows(*_fit_tied(_tied_pair(prior, K), right, wrong, K - 1), K)
    raise ParameterError(f"The parameters of a {type(prior).__name__} cannot be fitted.")


def _tied_pair(prior: DirichletRows, n_classes: int) -> tuple[float, float]:
    """Return the mean parameter on the diagonal and the mean parameter elsewhere."""
    alpha = np.asarray(prior.alpha, dtype=np.float64)
    if alpha.ndim < 3:  # three axes mean a matrix for every worker
        alpha = prior.pseudo_counts((), n_classes)
    diagonal = np.diagonal(alpha, axis1=-2, axis2=-1)
    n_off = alpha.size - diagonal.size
    off = (alpha.sum() - diagonal.sum()) / n_off if n_off else 1.0
    return float(diagonal.mean()), float(off)


def _tied_rows(diagonal: float, elsewhere: float, n_classes: int) -> DirichletRows:
    same = np.eye(n_classes, dtype=bool)
    return DirichletRows(np.where(same, float(diagonal), float(elsewhere)))


def _fit_tied(
    start: tuple[float, float], right: float, wrong: float, n_wrong: int
) -> tuple[float, float]:
    r"""Maximise the likelihood of Dir(a, b, …, b) with ``n_wrong`` times b, by Newton's method.

    .. math::
        \log\Gamma(a + m b) - \log\Gamma(a) - m \log\Gamma(b) + a E\log\theta_1
        + b \sum_{l > 1} E\log\theta_l

    The function is concave in (a, b), and the search stays in a box.
    """
    from scipy.special import gammaln, psi, zeta

    m = float(n_wrong)

    def value(a: float, b: float) -> float:
        total = gammaln(a + m * b) - gammaln(a) - m * gammaln(b)
        return float(total + a * right + b * wrong)

    a, b = start
    best = value(a, b)
    for _ in range(MOST_NEWTON_STEPS):
        both = psi(a + m * b)
        slope = float(both - psi(a) + right), float(m * (both - psi(b)) + wrong)
        shared = zeta(2, a + m * b)  # the trigamma function
        curve = shared - zeta(2, a), m * shared, m * m * shared - m * zeta(2, b)
        step = _newton_step((a, b), slope, curve)
        length = 1.0
        while length > 1e-6:
            new = _bounded(a, length * step[0]), _bounded(b, length * step[1])
            reached = value(*new)
            if reached >= best:
                break
            length /= 2
        else:
            break  # no improvement: rounding, or the corner of the box
        moved = abs(new[0] - a) / a + abs(new[1] - b) / b
        (a, b), best = new, reached
        if moved < 1e-10:
            break
    return float(a), float(b)


def _newton_step(
    point: tuple[float, float],
    slope: tuple[float, float],
    curve: tuple[float, float, float],
) -> tuple[float, float]:
    """Return the Newton step of a concave function; a parameter that would leave the box stays."""
    held = [
        (x <= SMALLEST and g < 0) or (x >= LARGEST and g > 0)
        for x, g in zip(point, slope, strict=True)
    ]
    if held[0] or held[1]:
        return (
            0.0 if held[0] else -slope[0] / curve[0],
            0.0 if held[1] else -slope[1] / curve[2],
        )
    determinant = curve[0] * curve[2] - curve[1] ** 2
    if not determinant > 0:  # rounding, far from the optimum: take gradient steps per parameter
        return -slope[0] / curve[0], -slope[1] / curve[2]
    return (
        (curve[1] * slope[1] - curve[2] * slope[0]) / determinant,
        (curve[1] * slope[0] - curve[0] * slope[1]) / determinant,
    )


def _bounded(x: float, step: float) -> float:
    """Move by at most a factor of five, and stay inside the box."""
    moved = min(max(x + step, x / 5, SMALLEST), 5 * x, LARGEST)
    return moved if step else x


# ------------------------------------------------------------------------------------- the sums


def sums_from_counts(prior: WorkerPrior, counts: Floats, weight: Floats | None = None) -> KindSums:
    """Return the sums over workers from their expected counts, as in mean field.

    Parameters
    ----------
    prior : WorkerPrior
    counts : (J, K, K) expected labels of each worker, true class second
        Workers without labels are left out.
    weight : (J,), optional
        Weight of each worker.
    """
    if weight is None:
        weight = (counts.sum(axis=(1, 2)) > 0).astype(np.float64)
    if isinstance(prior, MixturePrior):
        found = [part.posterior(counts).log_evidence for part in prior.parts]
        share = _shares(np.stack(found, axis=1), prior._shares())
        parts = zip(prior.parts, share.T, strict=True)
        sums = [sums_from_counts(part, counts, weight * own) for part, own in parts]
        return KindSums(*(np.concatenate(x) for x in zip(*sums, strict=True)))
    if isinstance(prior, Discrete):
        logs = np.log(np.clip(prior._matrices(counts.shape[1]), INSIDE, 1.0))
        of_kind = weight @ _shares(np.einsum("jkl,skl->js", counts, logs), prior._shares())
        return KindSums(of_kind, of_kind[:, None, None] * logs)
    logs = prior.posterior(counts).expected_log
    return KindSums(np.array([weight.sum()]), np.einsum("j,jkl->kl", weight, logs)[None])


def _shares(scores: Floats, prior_shares: Floats) -> Floats:
    """Return posterior shares (J, S) from log evidence (J, S) and prior shares (S,)."""
    scores = scores + np.log(np.maximum(prior_shares, 1e-300))
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def refit_to_counts(prior: WorkerPrior, counts: Floats, n_steps: int = 3) -> WorkerPrior:
    """Return the prior after ``n_steps`` EM steps on the evidence of counts (J, K, K)."""
    for _ in range(n_steps):
        prior = fit_prior(prior, sums_from_counts(prior, counts))
    return prior


# --------------------------------------------------------------------------- maximising evidence


def maximise_evidence(
    prior: WorkerPrior, log_evidence: Callable[[WorkerPrior], float], max_iter: int = 20
) -> WorkerPrior:
    """Return a prior of the same family with a higher evidence, by quasi-Newton steps.

    Parameters
    ----------
    prior : OneCoinPrior, TwoCoin, DirichletRows, Discrete or a MixturePrior of these
        Start of the search; Dirichlet rows must be tied, see :func:`fittable`.
    log_evidence : function of such a prior
        In belief propagation, the evidence after convergence. With messages held fixed, its maximum
        is elsewhere, and steps towards it oscillate.
    max_iter : int
        Maximum number of steps; one step evaluates the evidence about once per parameter.

    Examples
    --------
    >>> counts = np.array([[[9.0, 1.0], [2.0, 8.0]], [[5.0, 5.0], [4.0, 6.0]]])
    >>> def evidence(prior):
    ...     return prior.posterior(counts).log_evidence.sum()
    >>> better = maximise_evidence(OneCoinPrior(2, 1), evidence)
    >>> bool(evidence(better) > evidence(OneCoinPrior(2, 1)))
    True
    """
    from scipy.optimize import minimize

    start = _as_vector(prior)
    n_free = len(start)
    if n_free == 0:
        return prior
    box = [(np.log(1e-6), np.log(LARGEST))] * n_free
    found = minimize(
        lambda x: -float(log_evidence(_from_vector(prior, x)[0])),
        np.clip(start, *box[0]), method="L-BFGS-B", bounds=box,
        options={"maxiter": max_iter, "eps": 1e-5, "ftol": 1e-10},
    )  # fmt: skip
    better = _from_vector(prior, found.x)[0]
    return better if log_evidence(better) > log_evidence(prior) else prior


def _as_vector(prior: WorkerPrior) -> Floats:
    """Return the logarithms of a prior's parameters; shares are known up to a factor."""
    values: list[float]
    if isinstance(prior, MixturePrior):
        own = np.log(np.maximum(prior._shares(), 1e-6)) if len(prior.parts) > 1 else np.empty(0)
        return np.concatenate([own, *(_as_vector(part) for part in prior.parts)])
    if isinstance(prior, Discrete):
        shares = prior._shares()
        return np.log(np.maximum(shares, 1e-6)) if len(shares) > 1 else np.empty(0)
    if isinstance(prior, OneCoinPrior):
        values = [prior.a, prior.b]
    elif isinstance(prior, TwoCoin):
        values = [prior.a0, prior.b0, prior.a1, prior.b1]
    elif isinstance(prior, DirichletRows) and np.ndim(prior.alpha) == 2 and len(prior.alpha) > 1:
        values = list(_tied_pair(prior, len(prior.alpha)))
    else:
        raise ParameterError(f"The parameters of {prior!r} cannot be fitted.")
    return np.log(np.maximum(values, 1e-6))


def _from_vector(prior: WorkerPrior, vector: Floats) -> tuple[WorkerPrior, Floats]:
    """Return a prior with the first parameters of ``vector``, and the rest of the vector."""
    if isinstance(prior, MixturePrior):
        shares, rest = prior.weights, vector
        if len(prior.parts) > 1:
            shares, rest = np.exp(vector[: len(prior.parts)]), vector[len(prior.parts) :]
        parts = []
        for part in prior.parts:
            moved, rest = _from_vector(part, rest)
            parts.append(moved)
        return MixturePrior(parts, shares), rest
    if isinstance(prior, Discrete):
        n = len(prior.atoms)
        if n == 1:
            return prior, vector
        return Discrete(prior.atoms, np.exp(vector[:n])), vector[n:]
    if isinstance(prior, OneCoinPrior):
        return OneCoinPrior(*_inside(vector[:2])), vector[2:]
    if isinstance(prior, TwoCoin):
        return TwoCoin(*_inside(vector[:4])), vector[4:]
    assert isinstance(prior, DirichletRows)
    right, wrong = _inside(vector[:2])
    return _tied_rows(right, wrong, len(prior.alpha)), vector[2:]


def _inside(logs: Floats) -> list[float]:
    return [float(x) for x in np.clip(np.exp(logs), SMALLEST, LARGEST)]
