"""Bad workers: one score of what a worker knows, from labels, own habit and time.

What labels tell about the class is measured from the worker's confusion matrix in three ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.part import NotApplicable, WorkerPart
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds.classes.audit.pruning import PruningEffect, effect_of_pruning
from wisecrowd.kinds.classes.audit.response_times import relative_logs
from wisecrowd.kinds.classes.audit.shared import fit_with_law
from wisecrowd.kinds.classes.container import CrowdLabels

if TYPE_CHECKING:
    from wisecrowd.core.aggregator import Aggregator

TINY = 1e-300
KNOWLEDGE = np.array([0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 0.98])  # levels of what workers know
LITTLE = 2  # so many of the lowest levels are bad
PSEUDO_WORKERS = np.array([2.0, *[18 / 7] * 7])  # Dirichlet prior of the shares of the levels
RATE = 0.05  # accepted share of wrongly named workers
GRAVE = 0.4  # of it, if they are said to know nothing
ROUNDS, TOLERANCE = 200, 1e-9  # of EM for the shares of the levels
CONTRARY, CLEARLY = 0.6, 10.0  # share of labels against the task; nats over a habit that show it
SIGNAL = 0.95  # probability of knowledge that one worker must reach
LEAST_SPREAD = 0.3  # of log times between workers
FAST, FAST_SPREAD = -2.5, 1.5  # mean and spread of the z of workers who do not look
FEWEST_TIMED = 3  # workers with times, below which nobody is fast
STRETCH = 1 << 22  # numbers that are processed at once


def spammer_score(confusion: Floats) -> Floats:
    r"""Return the distance of each worker from a spammer: 0 for a spammer, 1 for a perfect worker.

    .. math::
        S_j = \frac{1}{K (K - 1)} \sum_{k < k'} \lVert \theta_{jk\cdot} - \theta_{jk'\cdot}
        \rVert^2

    A worker who always exchanges classes also has 1, because that can be corrected.

    Parameters
    ----------
    confusion : (n_workers, n_classes, n_classes)
        ``confusion[j, k, l]`` = p(label l | class k, worker j).

    References
    ----------
    V. C. Raykar and S. Yu (2012). Eliminating spammers and ranking annotators for crowdsourced
    labeling tasks. Journal of Machine Learning Research 13, 491-518.

    Examples
    --------
    >>> workers = np.array([np.eye(2), np.full((2, 2), 0.5), [[0.9, 0.1], [0.4, 0.6]]])
    >>> spammer_score(workers).round(3)
    array([1.  , 0.  , 0.25])
    """
    n_classes = confusion.shape[1]
    if n_classes < 2:
        return np.zeros(len(confusion))
    centred = confusion - confusion.mean(axis=1, keepdims=True)
    # The sum of squared distances over pairs is K times the sum of those to the mean.
    return np.asarray((centred**2).sum(axis=(1, 2)) / (n_classes - 1))


def mutual_information(confusion: Floats, class_prior: Floats) -> Floats:
    r"""Return the mutual information of class and label in bits, under the given class prior.

    .. math::
        I_j = \sum_{k, l} \pi_k \theta_{jkl} \log_2 \frac{\theta_{jkl}}{\sum_m \pi_m \theta_{jml}}

    Examples
    --------
    >>> mutual_information(np.eye(4)[None], np.full(4, 0.25))
    array([2.])
    """
    return np.asarray(_divergences(confusion, np.broadcast_to(class_prior, confusion.shape[:2]))
                      @ class_prior)  # fmt: skip


def channel_capacity(confusion: Floats, *, tol: float = 1e-9, max_iter: int = 10_000) -> Floats:
    r"""Return the channel capacity of each worker, in bits.

    The capacity is the maximum of the mutual information over class priors. It is computed by the
    Blahut-Arimoto iteration for all workers at once:

    .. math::
        \pi_k \leftarrow \pi_k 2^{D_k} / \sum_m \pi_m 2^{D_m}, \qquad
        D_k = \sum_l \theta_{jkl} \log_2 (\theta_{jkl} / \textstyle\sum_m \pi_m \theta_{jml})

    The iteration stops when the upper bound :math:`\max_k D_k` is within ``tol`` of the lower
    bound.

    References
    ----------
    R. E. Blahut (1972). Computation of channel capacity and rate-distortion functions. IEEE
    Transactions on Information Theory 18(4), 460-473.

    Examples
    --------
    >>> channel_capacity(np.array([[[0.9, 0.1], [0.1, 0.9]]])).round(6)  # 1 - H(0.1)
    array([0.531004])
    """
    n_workers, n_classes, _ = confusion.shape
    prior = np.full((n_workers, n_classes), 1 / max(n_classes, 1))
    capacity = np.zeros(n_workers)
    active = np.arange(n_workers)
    for _ in range(max_iter):
        bits = _divergences(confusion[active], prior[active])
        top = bits.max(axis=1)
        scaled = prior[active] * np.exp2(bits - top[:, None])
        total = scaled.sum(axis=1)
        capacity[active] = np.log2(total) + top  # the lower bound
        prior[active] = scaled / total[:, None]
        active = active[top - capacity[active] > tol]
        if len(active) == 0:
            break
    return np.maximum(capacity, 0.0)


def _divergences(confusion: Floats, prior: Floats) -> Floats:
    """Return the divergence (J, K) in bits of each row from the mean row under the prior (J, K)."""
    mean = np.einsum("jk,jkl->jl", prior, confusion)
    ratio = np.log2(np.maximum(confusion, TINY)) - np.log2(np.maximum(mean, TINY))[:, None, :]
    return np.asarray((confusion * np.where(confusion > 0, ratio, 0.0)).sum(axis=2))


@dataclass(frozen=True, eq=False)
class SpammerReport(WorkerPart):
    """Result of the search for bad workers; all arrays have one entry per worker.

    Attributes
    ----------
    workers, n_labels
        Ids and numbers of labels.
    bad, nothing
        Probability that the worker knows little (at most 0.15) or nothing.
    knowledge
        Expected share of labels that the worker gave because of the task.
    spammer, knows_nothing : bool
        Whom to look at, and who knows nothing; the false discovery rate of both is controlled.
    contrary : bool
        Whether the labels clearly avoid what the others say. Such workers are not accused.
    time_z
        Median log time, compared with the other workers; NaN without durations.
    score, capacity, information
        Measures of the fitted confusion matrix: Raykar and Yu's score, channel capacity and mutual
        information in bits.
    """

    table = "spammers"

    workers: NDArray[Any]
    n_labels: NDArray[np.int64]
    bad: Floats
    nothing: Floats
    knowledge: Floats
    spammer: Mask
    knows_nothing: Mask
    contrary: Mask
    time_z: Floats
    score: Floats
    capacity: Floats
    information: Floats
    rate: float
    has_signal: bool
    _pruning: PruningEffect | None = None

    @property
    def accused(self) -> Mask:
        """(n_workers,): workers of both levels, whom pruning removes."""
        return self.spammer | self.knows_nothing

    def findings(self) -> list[Finding]:
        """Return who knows nothing, whom to look at, and the lack of any signal."""
        found = []
        if not self.has_signal:
            found.append(Finding(
                "no-signal", "high", 1.0, (),
                "No worker's labels depend on those of the others: they are all random, or too few "
                "are shared.",
                "Check the task and label columns; collect more labels of the same tasks.",
            ))  # fmt: skip
        if self.knows_nothing.any():
            found.append(self._finding(
                "high", self.knows_nothing,
                ("knows", "know"), "nothing: their labels follow a habit and not the tasks",
                self._remedy(),
            ))  # fmt: skip
        rest = self.spammer & ~self.knows_nothing
        if rest.any():
            found.append(self._finding(
                "medium", rest,
                ("seems", "seem"), "to know little or nothing about the tasks",
                f"Look at some of their labels. {self._remedy()}",
            ))  # fmt: skip
        return found

    def _finding(
        self, severity: str, who: Mask, verb: tuple[str, str], what: str, remedy: str
    ) -> Finding:
        order, share = self.largest(who), self.share_of(who)
        size = f"; {int(self.n_labels[who].sum())} labels, {share:.0%} of all, which is the score"
        rate = self.rate * (GRAVE if severity == "high" else 1)
        return Finding(
            "spammers", severity, share, tuple(self.workers[order].tolist()),
            f"{self.named(order, size)} {verb[len(order) > 1]} {what}. About {rate:.0%} of the "
            "workers that are named so are named wrongly.",
            remedy,
        )  # fmt: skip

    def _remedy(self) -> str:
        how = for_reader("wisecrowd.audit.prune", "wisecrowd audit FILE --prune-to CLEAN.csv")
        matrices = "a method with confusion matrices, such as dawid-skene"
        if self._pruning is None:
            return f"Prune them ({how}), or use {matrices}, which learns to ignore them."
        if self._pruning.helps:
            return f"Prune them ({how}): for dawid-skene, {self._pruning}."
        return (
            f"Give them no more tasks. {matrices[0].upper()}{matrices[1:]}, already ignores them: "
            f"{self._pruning}."
        )


def find_spammers(
    labels: CrowdLabels,
    *,
    fit: Aggregator | None = None,
    gold: Any = None,
    rate: float = RATE,
    pruning: bool = True,
) -> SpammerReport:
    r"""Find workers who know little or nothing of the tasks, without truth.

    A worker :math:`j` knows the class :math:`k` with probability :math:`l`, and otherwise answers
    by habit:

    .. math::
        P(y \mid k) = l \, 1\{y = k\} + (1 - l) \, q_j(y), \qquad
        l \in \{0, .15, .3, .45, .6, .75, .9, .98\}

    The class comes from the posterior of the others: that of hierarchical-dawid-skene divided by
    the worker's own row. The habit :math:`q_j` is the worker's own histogram without the label in
    question, with one pseudo-label at the crowd's shares, so that equal answers count as habit and
    not as knowledge. EM over all workers finds the shares of the levels. Where there are durations,
    answering much faster than others is evidence too.

    Workers with a high :math:`P(l \le .15)` are to be looked at; those with a high
    :math:`P(l = 0)` know nothing. The largest set is named whose mean probability of an innocent
    member is at most ``rate``, or two fifths of it for those who know nothing.

    Parameters
    ----------
    labels : CrowdLabels
    fit : fitted method, optional
        A fit with a label law, for score, capacity and information; otherwise a
        fit of the default method is used.
    gold : known classes, optional
        In any form that ``Aggregator.fit`` takes. They score the remedy, and nothing else.
    rate : float, default 0.05
        Accepted false discovery rate.
    pruning : bool, default True
        Whether to measure what the removal of the spammers would change, for the remedy. This needs
        up to twelve Dawid-Skene fits if there are spammers.

    Notes
    -----
    Workers whose labels clearly avoid what the others say know something, and are not named. The
    levels and the rate were tried on real crowds with workers planted who answer at random, by the
    crowd's shares, or always the same.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(
    ...     400, 8 * simulate.OneCoinWorkers(8, 2) + 2 * simulate.Spammers(), n_classes=3
    ... )
    >>> report = find_spammers(crowd.labels)
    >>> report.workers[report.accused]
    array([8, 9])
    """
    check_number("rate", rate, 0.0, 1.0)
    if labels.n_classes < 2:
        raise NotApplicable("Spammers cannot be looked for: there is only one class.")
    if np.count_nonzero(labels.labels_per_task >= 2) < 2:
        raise NotApplicable("Spammers cannot be looked for: no two workers share two tasks.")
    level, contrary = knowledge_levels(labels, agreement_with_others(labels))
    time_z = log_time_z(labels)
    bad, nothing = (_with_time(level[:, :n].sum(axis=1), time_z) * ~contrary for n in (LITTLE, 1))
    has_signal = bool((level[:, LITTLE:].sum(axis=1) >= SIGNAL).any())
    spammer = most_probable(bad, rate) & has_signal
    knows_nothing = most_probable(nothing, GRAVE * rate) & has_signal
    model = fit_with_law(labels, fit)
    law = model.label_law()
    confusion = law.confusion(np.arange(labels.n_workers))
    accused = spammer | knows_nothing
    return SpammerReport(
        workers=labels.workers,
        n_labels=labels.labels_per_worker,
        bad=bad,
        nothing=nothing,
        knowledge=level @ KNOWLEDGE,
        spammer=spammer,
        knows_nothing=knows_nothing,
        contrary=contrary,
        time_z=time_z,
        score=spammer_score(confusion),
        capacity=channel_capacity(confusion, tol=1e-5),  # tolerance in bits
        information=mutual_information(confusion, law.class_prior),
        rate=rate,
        has_signal=has_signal,
        _pruning=effect_of_pruning(labels, accused, gold) if pruning and accused.any() else None,
    )


def agreement_with_others(labels: CrowdLabels) -> Floats:
    """Return the probability (n_annotations,) of each label as a class, by the others' labels."""
    from wisecrowd.kinds.classes.methods.hierarchical_dawid_skene import HierarchicalDawidSkene

    fit = HierarchicalDawidSkene()._fit_without_checks(labels)
    agreed = np.empty(labels.n_annotations)
    size = max(1, STRETCH // labels.n_classes)
    for begin in range(0, labels.n_annotations, size):
        rows = slice(begin, begin + size)
        task, worker, label = labels.task[rows], labels.worker[rows], labels.label[rows]
        others = fit.probas_[task] / np.maximum(fit.confusion_[worker, :, label], 1e-12)
        agreed[rows] = others[np.arange(len(label)), label] / others.sum(axis=1)
    return agreed


def knowledge_levels(labels: CrowdLabels, agreed: Floats) -> tuple[Floats, Mask]:
    """Return the probabilities (n_workers, 8) of the levels, and who is contrary (n_workers,).

    Labels of tasks that nobody else labelled say nothing.
    """
    J, K = labels.n_workers, labels.n_classes
    weight = labels.weights
    habit = _habit(labels, weight)
    weight = np.where(labels.labels_per_task[labels.task] >= 2, weight, 0.0)

    def log_likelihood(share: float, given: Floats) -> Floats:
        p = share * given + (1 - share) * habit
        log_p = weight * np.log(np.maximum(p, 1e-12))
        return np.bincount(labels.worker, log_p, J).astype(np.float64, copy=False)

    log_p = np.stack([log_likelihood(share, agreed) for share in KNOWLEDGE.tolist()], axis=1)
    contrary = log_likelihood(CONTRARY, (1 - agreed) / (K - 1)) - log_p[:, 0] > CLEARLY
    active = labels.labels_per_worker > 0
    shares = PSEUDO_WORKERS / PSEUDO_WORKERS.sum()
    for _ in range(ROUNDS):
        level = log_p + np.log(shares)
        level = np.exp(level - level.max(axis=1, keepdims=True))
        level /= level.sum(axis=1, keepdims=True)
        before, shares = shares, level[active].sum(axis=0) + PSEUDO_WORKERS
        shares = shares / shares.sum()
        if np.abs(shares - before).max() < TOLERANCE:
            break
    return level, contrary


def _habit(labels: CrowdLabels, weight: Floats) -> Floats:
    """Return the probability (n_annotations,) of each label by the worker's other labels."""
    J, K = labels.n_workers, labels.n_classes
    crowd = np.bincount(labels.label, weight, K) / max(float(weight.sum()), 1e-300)
    cell = labels.worker * np.int64(K) + labels.label
    used, place = np.unique(cell, return_inverse=True)
    own = np.bincount(place.ravel(), weight, len(used))[place.ravel()] - weight
    total = np.bincount(labels.worker, weight, J)[labels.worker] - weight
    return np.asarray((own + crowd[labels.label]) / (total + 1.0))


def log_time_z(labels: CrowdLabels) -> Floats:
    """Return the median log time (n_workers,) in robust standard deviations of all workers'.

    Times are compared with those of the others on the same tasks.
    """
    z = np.full(labels.n_workers, np.nan)
    if "duration" not in labels.columns:
        return z
    duration = np.asarray(labels.columns["duration"], dtype=np.float64)
    timed = labels.select_annotations(np.isfinite(duration) & (duration > 0))
    worker, logs = timed.worker, relative_logs(timed)
    order = np.lexsort((logs, worker))
    who, first, n = np.unique(worker[order], return_index=True, return_counts=True)
    if len(who) < FEWEST_TIMED:
        return z
    middle = logs[order][first + (n - 1) // 2] + logs[order][first + n // 2]
    apart = middle / 2 - np.median(middle / 2)
    z[who] = apart / max(1.4826 * float(np.median(np.abs(apart))), LEAST_SPREAD)
    return z


def _with_time(p: Floats, z: Floats) -> Floats:
    """Return probabilities of bad workers after their times; no time, no change."""
    slow = -(z**2) / 2
    fast = -(((z - FAST) / FAST_SPREAD) ** 2) / 2 - np.log(FAST_SPREAD)
    ratio = np.where(z < 0, np.clip(fast - slow, -2.0, 3.0), -0.5)
    odds = np.exp(np.where(np.isnan(z), 0.0, ratio))
    return np.asarray(p * odds / (p * odds + 1 - p))


def most_probable(p: Floats, rate: float) -> Mask:
    """Return the largest set (n,) of the most probable whose mean of 1 - p is at most the rate.

    Examples
    --------
    >>> most_probable(np.array([0.99, 0.2, 0.95, 0.9]), 0.05)
    array([ True, False,  True, False])
    """
    order = np.argsort(-p, kind="stable")
    mean = np.cumsum(1 - p[order]) / np.arange(1, len(p) + 1)
    chosen = np.zeros(len(p), dtype=bool)
    chosen[order[: np.count_nonzero(mean <= rate)]] = True  # the mean never falls
    return chosen
