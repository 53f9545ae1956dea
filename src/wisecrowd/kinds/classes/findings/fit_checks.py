"""Checks that run after every fit; they are cheap and silent on crowds without problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.footprint import MOST_VOTES
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.result import Fit, choose_labels, confidence_of
from wisecrowd.core.types import Codes, Floats, Mask
from wisecrowd.kinds.classes.container import (
    CrowdLabels,
    subsample_step,
    subsample_tasks,
    vote_table,
)
from wisecrowd.kinds.classes.findings.data_checks import LEAST_TASKS, data_findings
from wisecrowd.kinds.classes.findings.little_evidence import (
    few_shared_tasks,
    little_evidence,
    unsupported_lead,
)

LEAST_WORKERS = 4
OVERRULED = 0.02  # share of tasks on which a fit may overrule the vote, whatever the correlation
MUCH_OVERRULED = 0.05  # the same in large crowds, where a second opinion costs more than a fit
SPARSE = 8.0  # labels per worker below which luck and skill are hard to distinguish
MIN_Z = 3.0  # standard errors; honest crowds stay below 1.5, because the fit absorbs correlation
# Correlation of two labels of a task given the result, and its excess over that given the vote.
# Varying difficulty causes the former, up to .13 in real crowds, but not the latter.
MIN_CORRELATION, MIN_RISE = 0.04, 0.05
RARE = 0.15  # share of the tasks that all classes but one have, if these are rare
AGAINST = 1 / 3  # share of labels by workers who are wrong more often than chance
NATS = 5.0  # minimum log-odds of a fit against the same fit with two classes exchanged
SWITCHED = 0.02  # minimum share of labels that another order of the classes explains better
MOVED = 0.01  # minimum share of labels that estimated class frequencies would change
FEW_ROUNDS = 10  # EM iterations that estimate class frequencies from a fit that assumed equal ones
SMALLEST = 1e-3  # smaller probabilities are not evidence of exchanged classes
MOST_NAMED = 20  # tasks that a finding names


def audit_command(*options: str) -> str:
    """Return the audit command in the reader's syntax; the options are for the shell."""
    return for_reader("wisecrowd.audit.audit_crowd", " ".join(["wisecrowd audit FILE", *options]))


@dataclass(frozen=True, eq=False)
class Fitted:
    """Input of the checks: labels, the class chosen for each task, and confusion matrices.

    Attributes
    ----------
    labels : CrowdLabels
    codes : (n_tasks,) class chosen for each task
    confusion : (n_workers, n_classes, n_classes), optional
    learns_workers : bool
        Whether the method learns about workers; a plain vote does not.
    subsample : bool
        Whether the labels are a subsample of a large crowd.
    """

    labels: CrowdLabels
    codes: Codes
    confusion: Floats | None
    learns_workers: bool
    subsample: bool = False

    @cached_property
    def agrees(self) -> Mask:
        """(n_annotations,): whether the label is the class chosen for its task."""
        return np.asarray(self.codes[self.labels.task] == self.labels.label)

    @cached_property
    def votes(self) -> Floats:
        """(n_tasks, n_classes) weight of the labels."""
        return vote_table(self.labels, weighted=True)

    @cached_property
    def overruled(self) -> Mask:
        """(n_tasks,): whether the chosen class has fewer votes than another."""
        own = self.votes[np.arange(self.labels.n_tasks), self.codes]
        return np.asarray(own < self.votes.max(axis=1) - 1e-9)

    @cached_property
    def by_vote(self) -> Codes:
        """(n_tasks,): the class with most votes; the chosen one if it is among these."""
        return np.where(self.overruled, self.votes.argmax(axis=1), self.codes).astype(np.int32)

    @property
    def share_overruled(self) -> float:
        """Share of the labelled tasks on which the fit overrules the vote."""
        return float(self.overruled.sum() / (self.labels.labels_per_task > 0).sum())

    @property
    def one_coin(self) -> bool:
        """Whether confusion matrices have one parameter, judged by the busiest worker."""
        return self.confusion is None or one_parameter(self.confusion, self.labels)


def one_parameter(confusion: Floats, labels: CrowdLabels) -> bool:
    """Return whether confusion matrices have one parameter, judged by the busiest worker."""
    busiest = confusion[int(labels.labels_per_worker.argmax())]
    off = busiest[~np.eye(len(busiest), dtype=bool)]
    return bool(np.ptp(off) <= 1e-9 and np.ptp(np.diagonal(busiest)) <= 1e-9)


def fit_findings(fitted: Fitted, n_labels_per_worker: float) -> Iterator[Finding]:
    """Yield findings on a fit; the labels may be a subsample."""
    labels = fitted.labels
    n_tasks = int((labels.labels_per_task > 0).sum())
    n_workers = int((labels.labels_per_worker > 0).sum())
    if n_tasks < LEAST_TASKS or labels.n_classes < 2 or not fitted.learns_workers:
        return
    yield from _sparse_workers(fitted, n_labels_per_worker)
    if n_workers < LEAST_WORKERS or labels.n_tasks * labels.n_classes > MOST_VOTES:
        return
    yield from _labels_together(fitted)
    against = list(_against_chance(fitted)) or list(_exchanged_classes(fitted))
    yield from against
    if not against:
        yield from _overruled_vote(fitted)


def _sparse_workers(fitted: Fitted, per_worker: float) -> Iterator[Finding]:
    """Find too few labels to tell the workers apart; whether that harms is for other checks."""
    least = SPARSE if fitted.one_coin else max(SPARSE, 2.0 * fitted.labels.n_classes)
    if per_worker >= least:
        return
    few = f"{per_worker:.1f}" if per_worker < 10 else f"{per_worker:.0f}"
    yield Finding(
        "sparse-workers", "low", per_worker / least, (),
        f"Workers have {few} labels each on average: too few to tell how good each of them is.",
        "Let fewer workers label more tasks each, if you need to know.",
    )  # fmt: skip


def _labels_together(fitted: Fitted) -> Iterator[Finding]:
    """Find labels of the same task that the result makes right or wrong together, unlike the vote.

    Given the truth, labels of independent workers are not, regardless of skill. Tasks of varying
    difficulty correlate them a little, given any result. If a result follows copies instead of the
    truth, the labels of all others go together given that result, and less so given the vote.
    """
    if fitted.share_overruled <= OVERRULED:
        return
    correlation, z = _correlation(fitted.labels, fitted.codes)
    by_vote, _ = _correlation(fitted.labels, fitted.by_vote)
    if correlation <= MIN_CORRELATION or z <= MIN_Z or correlation - by_vote <= MIN_RISE:
        return
    counts = np.bincount(fitted.codes, minlength=fitted.labels.n_classes)
    common = fitted.labels.classes[[int(counts.argmax())]]
    share = counts.max() / counts.sum()
    if share > 1 - RARE:
        why = (
            f"{share:.0%} of the results are {describe_ids(common)}, and tasks of a rare class "
            "that are missed would cause it, or workers who copy each other."
        )
    else:
        why = "the result may follow workers who copy each other."
    yield Finding(
        "dependent-labels", "medium", correlation, (),
        f"Labels of the same task are correlated ({correlation:.2f}) given the result, and "
        f"{'less so' if by_vote > MIN_CORRELATION / 2 else 'not'} given the majority vote "
        f"({by_vote:.2f}), which it overrules on {fitted.share_overruled:.0%} of the tasks: {why}",
        "Look for copies and remove them: "
        + for_reader("wisecrowd.audit.clean(labels, ['clones', 'collusion']).",
                     "wisecrowd audit FILE --prune clones --prune collusion --prune-to CLEAN.csv."),
    )  # fmt: skip


def _correlation(labels: CrowdLabels, codes: Codes) -> tuple[float, float]:
    """Return the correlation of being right of two labels of a task, and its z-score."""
    agrees = codes[labels.task] == labels.label
    n = np.maximum(labels.labels_per_worker, 1)
    rate = np.bincount(labels.worker[agrees], minlength=labels.n_workers) / n
    rest = agrees - rate[labels.worker]
    total = np.bincount(labels.task, rest, labels.n_tasks)
    pairs = total**2 - np.bincount(labels.task, rest**2, labels.n_tasks)  # twice their sum
    n_pairs = float((labels.labels_per_task * (labels.labels_per_task - 1)).sum())
    spread = float((rate * (1 - rate))[labels.worker].mean())
    noise = float(np.sqrt((pairs**2).sum()))
    if n_pairs == 0 or spread < 1e-3 or noise == 0:
        return 0.0, 0.0
    return float(pairs.sum()) / n_pairs / spread, float(pairs.sum()) / noise


def _against_chance(fitted: Fitted) -> Iterator[Finding]:
    """Find many labels by workers who disagree with the fit more often than random labels would."""
    labels, K = fitted.labels, fitted.labels.n_classes
    n = labels.labels_per_worker
    right = np.bincount(labels.worker[fitted.agrees], minlength=labels.n_workers)
    missing = n / K - right
    opposed = missing > 2 * np.sqrt(n / K * (1 - 1 / K))
    share = float(n[opposed].sum() / n.sum())
    if share <= AGAINST:
        return
    order = np.argsort(-np.where(opposed, missing, 0), kind="stable")[: int(opposed.sum())]
    ids = labels.workers[order]
    yield Finding(
        "adversarial-majority", "high", share, tuple(ids.tolist()),
        f"{share:.0%} of the labels are by workers ({describe_ids(ids)}) who disagree with the "
        "result more often than chance; either they err together or everybody else does, and the "
        "labels alone cannot tell which.",
        f"Look for collusion ({audit_command('--part collusion')}), and give gold labels of a few "
        "tasks.",
    )  # fmt: skip


def _exchanged_classes(fitted: Fitted) -> Iterator[Finding]:
    """Find another order of the classes that explains the labels better, or nearly as well."""
    labels, K = fitted.labels, fitted.labels.n_classes
    pooled = np.bincount(
        fitted.codes[labels.task].astype(np.int64) * K + labels.label, minlength=K * K
    ).reshape(K, K)
    gap, pair = np.inf, (0, 0)
    if fitted.confusion is not None and fitted.confusion.size <= 10_000_000:
        gap, pair = _gap_in_nats(fitted.confusion[labels.labels_per_worker > 0])
    better = _better_order(pooled)
    if gap >= NATS and better <= SWITCHED:
        return
    ids = labels.classes[list(pair)] if gap < NATS else labels.classes[pooled.argmax(1) != range(K)]
    how = (
        f"a fit with them exchanged is only {max(gap, 0.0):.1f} nats less probable"
        if gap < NATS
        else f"another order of the classes agrees with {better:.0%} more labels"
    )
    yield Finding(
        "switched-classes", "high", float(better), tuple(ids.tolist()),
        f"Classes {describe_ids(ids)} may be exchanged: {how}.",
        "Give gold labels of a few tasks of each, or a prior that says that workers are better "
        "than chance.",
    )  # fmt: skip


def _gap_in_nats(confusion: Floats) -> tuple[float, tuple[int, int]]:
    """Return the log-odds of the fit against one with two classes exchanged.

    The likelihood of both is the same, so only the weak prior distinguishes the classes.
    """
    K = confusion.shape[1]
    alpha = np.full((K, K), 2 / K) + (2 - 2 / K) * np.eye(K)
    score = alpha @ np.log(np.maximum(confusion, SMALLEST)).sum(axis=0).T  # (K, K): k read as k'
    same = np.diagonal(score)
    gap = same[:, None] + same[None, :] - score - score.T
    gap[np.diag_indices(K)] = np.inf
    k, other = np.unravel_index(int(gap.argmin()), gap.shape)
    return float(gap[k, other]), (int(min(k, other)), int(max(k, other)))


def _better_order(pooled: NDArray[np.int64]) -> float:
    """Return the additional share of labels that agree with another order of the classes."""
    K = len(pooled)
    if (pooled.argmax(axis=1) == np.arange(K)).all() or K > 500:
        return 0.0
    from scipy.optimize import linear_sum_assignment

    row, column = linear_sum_assignment(-pooled)
    return float((pooled[row, column].sum() - np.trace(pooled)) / max(int(pooled.sum()), 1))


def _overruled_vote(fitted: Fitted) -> Iterator[Finding]:
    """Find results that differ from the vote where a second opinion does not rule out a loss."""
    labels = fitted.labels
    if not fitted.overruled.any():  # a vote without a winner is not overruled
        return
    if fitted.subsample and fitted.share_overruled <= MUCH_OVERRULED:
        return
    lead = unsupported_lead(labels, fitted.votes, fitted.codes)
    if lead is None:
        return
    n_tasks = int((labels.labels_per_task > 0).sum())
    tied = (fitted.votes >= fitted.votes.max(axis=1, keepdims=True) - 1e-9).sum(axis=1) > 1
    n_ties = int((tied & (labels.labels_per_task > 0)).sum())
    doubtful = np.flatnonzero(fitted.overruled | tied)
    doubtful = doubtful[np.argsort(lead.by_task[doubtful], kind="stable")][:MOST_NAMED]
    ties = f" and breaks ties on {n_ties / n_tasks:.0%}" if n_ties else ""
    loss = lead.mean < -2 * lead.error
    yield Finding(
        "overruled-vote", "high" if loss else "medium", fitted.share_overruled,
        tuple(labels.tasks[doubtful].tolist()),
        f"The result overrules the majority vote on {fitted.share_overruled:.0%} of the tasks"
        f"{ties}. By the other labels of these tasks, that {'is' if loss else 'may be'} a loss "
        f"({lead.mean / max(lead.error, 1e-9):+.1f} standard errors).",
        f"Compare with {for_reader('MajorityVote', '-m majority-vote')}, or give gold labels of "
        "some of these tasks.",
    )  # fmt: skip


def _assumed_frequencies(
    labels: CrowdLabels, probas: Any, class_prior: Floats | None
) -> Iterator[Finding]:
    """Find many labels that depend on the wrong assumption of equally frequent classes."""
    if class_prior is None or hasattr(probas, "tocsr") or np.ptp(class_prior) > 1e-9:
        return
    likelihood = np.asarray(probas)[labels.labels_per_task > 0]  # up to a factor for each task
    n, K = likelihood.shape
    if n < LEAST_TASKS or K < 2:
        return
    shares, claimed = class_prior, likelihood
    for _ in range(FEW_ROUNDS):
        claimed = likelihood * shares
        claimed /= claimed.sum(axis=1, keepdims=True)
        shares = claimed.mean(axis=0)
    gain = float(np.log(likelihood @ shares / (likelihood @ class_prior)).sum())
    moved = float(np.mean(claimed.argmax(axis=1) != likelihood.argmax(axis=1)))
    if moved <= MOVED or gain <= NATS + 0.5 * (K - 1) * np.log(n):
        return
    ids = labels.classes[np.argsort(-shares, kind="stable")]
    yield Finding(
        "assumed-frequencies", "low", moved, tuple(ids.tolist()),
        f"Classes were taken for equally frequent, yet {shares.max():.0%} of the tasks seem to be "
        f"{describe_ids(ids[:1])} and {shares.min():.0%} {describe_ids(ids[-1:])}; with that, "
        f"{moved:.0%} of the labels would differ.",
        "Estimate the frequencies: "
        + for_reader("class_prior='estimate'.", "-p class_prior=estimate."),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------- all


def findings_of(
    labels: CrowdLabels, result: Fit, known: Mask | None = None, *, labels_only: bool = True
) -> list[Finding]:
    """Return the findings on a fit and its labels.

    Parameters
    ----------
    labels : CrowdLabels
    result : Fit
    known : (n_tasks,) bool, optional
        Tasks whose class was given as gold; they are left out.
    labels_only : bool
        Whether the fit used labels only. A fit with a task prior may overrule the vote.
    """
    some, step = subsample_tasks(labels), subsample_step(labels)
    found = list(data_findings(labels, some))
    if known is not None and known.any():
        some = some.select_annotations(~known[::step][some.task])
    if some.n_annotations == 0 or not labels_only:
        return found
    fitted = replace(result, answers=result.probas[::step])
    return found + result_findings(
        some, fitted, labels.class_totals, labels.labels_per_worker, subsample=step > 1
    )


def result_findings(
    some: CrowdLabels,
    result: Fit,
    class_totals: Floats,
    labels_per_worker: NDArray[Any],
    *,
    subsample: bool,
) -> list[Finding]:
    """Return the findings on the result for some of the tasks.

    Parameters
    ----------
    some : CrowdLabels
        Labels of a subsample of the tasks, or of all.
    result : Fit
        The fit, with the answers of these tasks only.
    class_totals, labels_per_worker : (n_classes,) and (n_workers,)
        Of all labels.
    subsample : bool
        Whether there are more tasks.
    """
    codes = choose_labels(result.probas, class_totals)[0]
    learns = result.confusion is not None or len(result.history) > 0 or result.n_iter > 1
    fitted = Fitted(some, codes, result.confusion, learns, subsample)
    n_workers = max(int((labels_per_worker > 0).sum()), 1)
    found = list(fit_findings(fitted, float(labels_per_worker.sum()) / n_workers))
    if learns:
        confidence = confidence_of(result.probas, codes)
        found += little_evidence(some, codes, confidence, labels_per_worker)
    if learns and not few_shared_tasks(some):
        found += _assumed_frequencies(some, result.probas, result.class_prior)
    return found
