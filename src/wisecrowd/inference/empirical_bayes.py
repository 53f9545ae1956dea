r"""Empirical Bayes: the parameters of a prior, fitted to what is believed of the workers.

A prior is made of *kinds*: a Beta or Dirichlet density is one kind, an atom of a discrete prior is
one, and a mixture has those of its parts, in order. All that a fit needs are two sums per kind: how
many workers are of it, and the sum of their expected log confusion matrices. They add up over
workers and over the nodes of an integration rule, so mean field and belief propagation share
:func:`refit`, the M-step

.. math:: \eta' = \arg\max_\eta \sum_j E_{q(\theta_j)} \log p(\theta_j \mid \eta),

which never lowers the evidence (nor a variational bound of it).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference.priors import DirichletRows, Discrete, Mixture, OneCoin, TwoCoin
from wisecrowd.inference.quadrature import INSIDE
from wisecrowd.inference.worker_prior import WorkerPrior, coin_matrices

Floats = NDArray[np.float64]

SMALLEST, LARGEST = 0.02, 1000.0  # fitted parameters stay between: few workers may ask for 0 or ∞
ENOUGH = 1e-9  # workers of a kind below which nothing can be learned about it


class KindSums(NamedTuple):
    """What workers say about the kinds of a prior.

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
    >>> n_kinds(Mixture([OneCoin(9, 1), Discrete([0.5, 0.1])]))
    3
    """
    if isinstance(prior, Mixture):
        return sum(n_kinds(part) for part in prior.parts)
    return len(prior.atoms) if isinstance(prior, Discrete) else 1


def fittable(prior: WorkerPrior, n_classes: int) -> WorkerPrior:
    """Return the member of the family that :func:`refit` searches which is nearest to ``prior``.

    Dirichlet rows get one number on the diagonal and one elsewhere: with more, a crowd has too few
    workers to tell them apart.

    Examples
    --------
    >>> fittable(DirichletRows([[3, 1], [2, 5]]), n_classes=2).alpha
    array([[4. , 1.5],
           [1.5, 4. ]])
    """
    if isinstance(prior, Mixture):
        return Mixture([fittable(part, n_classes) for part in prior.parts], prior.weights)
    if isinstance(prior, DirichletRows):
        alpha = np.asarray(prior.alpha, dtype=np.float64)
        if alpha.ndim < 3:
            alpha = prior.pseudo_counts((), n_classes)
        diagonal = np.diagonal(alpha, axis1=-2, axis2=-1)
        n_off = max(alpha.size - diagonal.size, 1)
        return _tied_rows(diagonal.mean(), (alpha.sum() - diagonal.sum()) / n_off, n_classes)
    if isinstance(prior, OneCoin | TwoCoin | Discrete):
        return prior
    raise ParameterError(
        f"The parameters of a {type(prior).__name__} cannot be fitted; use OneCoin, TwoCoin, "
        "DirichletRows, Discrete or a Mixture of these."
    )


def refit(prior: WorkerPrior, sums: KindSums) -> WorkerPrior:
    """Return the prior of the same family under which the workers are most probable.

    Parameters
    ----------
    prior : OneCoin, TwoCoin, DirichletRows, Discrete or a Mixture of these
        Of Discrete the weights are fitted, of a Mixture the weights and the parts.
    sums : KindSums
        From :func:`sums_from_counts` or :func:`sums_from_nodes`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> accuracy = rng.beta(6, 2, 5000)
    >>> known = sums_from_nodes(OneCoin(), accuracy, np.ones(5000), n_classes=3)
    >>> fitted = refit(OneCoin(), known)
    >>> round(fitted.a, 1), round(fitted.b, 1)
    (6.0, 2.0)
    """
    total = sums.weight.sum()
    if isinstance(prior, Mixture):
        bounds = np.cumsum([0, *(n_kinds(part) for part in prior.parts)])
        pairs = list(zip(bounds[:-1], bounds[1:], strict=True))
        own = [KindSums(*(x[a:b] for x in sums)) for a, b in pairs]
        parts = [refit(part, mine) for part, mine in zip(prior.parts, own, strict=True)]
        shares = np.array([mine.weight.sum() for mine in own])
        return Mixture(parts, shares / total if total > ENOUGH else prior.weights)
    if total <= ENOUGH:
        return prior
    if isinstance(prior, Discrete):
        return Discrete(prior.atoms, sums.weight / total)
    return _refit_density(prior, sums.log_confusion[0] / total)


def _refit_density(prior: WorkerPrior, mean_log: Floats) -> WorkerPrior:
    """Fit one Beta or Dirichlet to the workers' mean expected log confusion (K, K)."""
    K = len(mean_log)
    if K == 1:
        return prior  # every label is right: nothing to learn
    right = float(np.trace(mean_log)) / K
    wrong = (float(mean_log.sum()) - K * right) / K  # of all wrong labels of a row together
    if isinstance(prior, OneCoin):
        off = wrong / (K - 1) + np.log(K - 1)  # E log(1 - p)
        return OneCoin(*_fit_tied((prior.a, prior.b), right, off, 1))
    if isinstance(prior, TwoCoin):
        first = _fit_tied((prior.a0, prior.b0), mean_log[0, 0], mean_log[0, 1], 1)
        return TwoCoin(*first, *_fit_tied((prior.a1, prior.b1), mean_log[1, 1], mean_log[1, 0], 1))
    if isinstance(prior, DirichletRows):
        tied = np.asarray(fittable(prior, K).alpha)  # type: ignore[attr-defined]
        return _tied_rows(*_fit_tied((tied[0, 0], tied[0, 1]), right, wrong, K - 1), K)
    raise ParameterError(f"The parameters of a {type(prior).__name__} cannot be fitted.")


def _tied_rows(diagonal: float, elsewhere: float, n_classes: int) -> DirichletRows:
    same = np.eye(n_classes, dtype=bool)
    return DirichletRows(np.where(same, float(diagonal), float(elsewhere)))


def _fit_tied(
    start: tuple[float, float], right: float, wrong: float, n_wrong: int
) -> tuple[float, float]:
    r"""Maximise the likelihood of Dir(a, b, …, b) with ``n_wrong`` times b.

    .. math::
        \log\Gamma(a + m b) - \log\Gamma(a) - m \log\Gamma(b) + a E\log\theta_1
        + b \sum_{l > 1} E\log\theta_l

    It is concave in (a, b); the search is over their logarithms, inside a box.
    """
    from scipy.optimize import minimize
    from scipy.special import gammaln, psi

    m = n_wrong

    def negative(logs: Floats) -> tuple[float, Floats]:
        a, b = np.exp(logs)
        value = gammaln(a + m * b) - gammaln(a) - m * gammaln(b) + a * right + b * wrong
        both = psi(a + m * b)
        slope = np.array([a * (both - psi(a) + right), b * (m * (both - psi(b)) + wrong)])
        return -float(value), -slope

    box = (np.log(SMALLEST), np.log(LARGEST))
    begin = np.clip(np.log(np.maximum(start, 1e-300)), *box)
    found = minimize(
        negative, begin, jac=True, method="L-BFGS-B", bounds=[box, box],
        options={"ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    if not found.fun <= negative(np.log(np.maximum(start, 1e-300)))[0]:
        return start
    a, b = np.exp(found.x)
    return float(a), float(b)


# ------------------------------------------------------------------------------------- the sums


def sums_from_counts(prior: WorkerPrior, counts: Floats, weight: Floats | None = None) -> KindSums:
    """Return the sums over workers who are known by expected counts, as in mean field.

    Parameters
    ----------
    prior : WorkerPrior
    counts : (J, K, K) expected labels of each worker, true class second
        Workers without labels say nothing about the prior and are left out.
    weight : (J,), optional
        How much each worker counts.
    """
    if weight is None:
        weight = (counts.sum(axis=(1, 2)) > 0).astype(np.float64)
    if isinstance(prior, Mixture):
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


def sums_from_nodes(
    prior: WorkerPrior,
    nodes: Floats,
    share: Floats,
    n_classes: int,
    kind: NDArray[np.integer] | None = None,  # type: ignore[type-arg]
) -> KindSums:
    """Return the sums over workers who are known by weighted nodes, as in belief propagation.

    Parameters
    ----------
    prior : WorkerPrior
    nodes : (n,) accuracies or (n, K, K) confusion matrices, those of all workers laid end to end
    share : (n,) posterior share of each node: those of one worker sum to one
    n_classes : int
    kind : (n,), optional
        The kind of each node, from :func:`kinds_of_rule`; may be left out where there is one only.
    """
    count = n_kinds(prior)
    where = np.zeros(len(share), dtype=np.intp) if kind is None else np.asarray(kind)
    if kind is None and count > 1:
        raise ParameterError(f"The prior has {count} kinds; say of which kind each node is.")
    matrices = coin_matrices(nodes, n_classes) if nodes.ndim == 1 else nodes
    logs = np.log(np.clip(matrices, 1e-300, 1.0)).reshape(len(share), -1)
    sums = [np.bincount(where, share * column, count) for column in logs.T]
    shape = (count, n_classes, n_classes)
    return KindSums(np.bincount(where, share, count), np.stack(sums, axis=1).reshape(shape))


def kinds_of_rule(prior: WorkerPrior, degree: int, n_classes: int, size: int = 512) -> NDArray[np.intp]:
    """Return the kind of each node of ``prior.rule(degree, n_classes, size=size)``.

    Examples
    --------
    >>> kinds_of_rule(Mixture([OneCoin(9, 1), Discrete([0.5, 0.1])]), degree=3, n_classes=2)
    array([0, 0, 1, 2])
    """
    if isinstance(prior, Mixture):
        found, first = [], 0
        for part in prior.parts:
            found.append(first + kinds_of_rule(part, degree, n_classes, size))
            first += n_kinds(part)
        return np.concatenate(found)
    if isinstance(prior, Discrete):
        return np.arange(len(prior.atoms))
    return np.zeros(len(prior.rule(degree, n_classes, size=size).log_weight), dtype=np.intp)


def refit_to_counts(prior: WorkerPrior, counts: Floats, n_steps: int = 3) -> WorkerPrior:
    """Return the prior after ``n_steps`` rounds of EM on the evidence of expected counts (J, K, K)."""
    for _ in range(n_steps):
        prior = refit(prior, sums_from_counts(prior, counts))
    return prior
