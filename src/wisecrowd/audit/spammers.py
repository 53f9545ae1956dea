"""Spammers: workers whose labels do not, or hardly, depend on the tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.association import Association, association
from wisecrowd.audit.covariance import RIDGES, RowFit, pair_z, two_means
from wisecrowd.audit.default_fit import fit_with_law
from wisecrowd.audit.information import channel_capacity, mutual_information, spammer_score
from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.audit.pruning import PruningEffect, effect_of_pruning
from wisecrowd.core.findings import Finding
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import as_generator, check_number
from wisecrowd.families.moments.pair_moments import PairMoments, pair_moments

if TYPE_CHECKING:
    from wisecrowd.core.aggregator import Aggregator

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MAX_PAIRS = 1_000_000
VANISHED = 1e-3  # length of rows that the ridge has shrunk to zero
CERTAIN = 6.0  # standard errors; significant even as the largest of a million pairs
SHORT = 0.5  # share of the other centre's length; a longer centre is a second group, not spam
SCATTER = 3.0  # times the scatter of silent workers about zero; suspects within it are spammers
FEW = 3  # minimum number of clear spammers to estimate that scatter,
FEW_SHARE = 0.05  # and their minimum share of the testable workers
SURE = 1.645  # standard errors: one-sided 95%
EXTREME_SHARE = 0.5  # share of all tasks that makes labels at chance level harmful to the whole set
LITTLE = 1 / 8  # share of the typical information, which grows with the square of the slope


@dataclass(frozen=True, eq=False)
class SpammerReport(Part):
    """Result of the search for spammers; all arrays have one entry per worker.

    Attributes
    ----------
    workers, n_labels
        Ids and numbers of labels.
    spammer : bool
        Whether the worker is near zero in the label covariance, confirmed by the test.
    extreme : bool
        Whether the worker labelled at least half of the tasks and carries, with 95% confidence,
        under an eighth of the typical information.
    association, standard_error, z
        Slope of the worker's labels on the others' votes, 1 for a typical honest worker; its
        standard error if the labels were independent of the tasks; the slope in such errors.
    testable : bool
        Whether a typical worker on the same tasks would have been distinguished from a spammer.
    row_norm
        Length of the worker's row in the low-rank fit of the covariance.
    score, capacity, information, accuracy
        Measures of the fitted confusion matrix: Raykar and Yu's score, channel capacity and mutual
        information in bits, and the accuracy.
    ridge, rank
        Parameters of the covariance fit. Held-out pairs determine the ridge; see the notes of
        :func:`find_spammers` for the rank.
    """

    workers: NDArray[Any]
    n_labels: NDArray[np.int64]
    spammer: Mask
    extreme: Mask
    association: Floats
    standard_error: Floats
    z: Floats
    testable: Mask
    row_norm: Floats
    score: Floats
    capacity: Floats
    information: Floats
    accuracy: Floats
    n_tasks: int
    ridge: float
    rank: int
    has_signal: bool
    _pruning: PruningEffect | None = None

    @property
    def accused(self) -> Mask:
        """(n_workers,): spammers of either kind, whom pruning removes."""
        return self.spammer | self.extreme

    def tables(self) -> dict[str, Table]:
        """Return the table of workers."""
        columns = (
            "n_labels", "spammer", "extreme", "association", "standard_error", "z", "testable",
            "row_norm", "score", "capacity", "information", "accuracy",
        )  # fmt: skip
        return {"spammers": {"worker": self.workers} | {c: getattr(self, c) for c in columns}}

    def findings(self) -> list[Finding]:
        """Return extreme spammers, other spammers, and the lack of any signal."""
        found = []
        if not self.has_signal:
            found.append(Finding(
                "no-signal", "high", 1.0, (),
                "No worker's labels depend on those of the others: they are all random, or too few "
                "are shared.",
                "Check the task and label columns; collect more labels of the same tasks.",
            ))  # fmt: skip
        if self.extreme.any():
            found.append(self._finding(
                "extreme-spammers", "high", self.extreme,
                "labelled at least half of the tasks, and yet their labels say less than an eighth "
                "of what those of a typical worker say",
            ))  # fmt: skip
        rest = self.spammer & ~self.extreme
        if rest.any():
            share = self.n_labels[rest].sum() / max(self.n_labels.sum(), 1)
            found.append(self._finding(
                "spammers", _severity(share), rest,
                "gave labels that have little or nothing to do with those of the others",
            ))  # fmt: skip
        return found

    def _finding(self, name: str, severity: str, who: Mask, did: str) -> Finding:
        order = np.argsort(-self.n_labels[who], kind="stable")
        ids = self.workers[who][order]
        count = int(self.n_labels[who].sum())
        share = count / max(int(self.n_labels.sum()), 1)
        return Finding(
            name, severity, float(share), tuple(ids.tolist()),
            f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}; {count} labels, "
            f"{share:.0%} of all, which is the score) {did}.",
            self._remedy(),
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


def _severity(share: float) -> str:
    """Return the severity of spammers with this share of all labels."""
    return "high" if share >= 0.2 else "medium" if share >= 0.05 else "low"


def find_spammers(
    labels: CrowdLabels,
    *,
    fit: Aggregator | None = None,
    level: float = 0.01,
    ridge: float | None = None,
    random_state: Any = 0,
    pruning: bool = True,
) -> SpammerReport:
    r"""Find workers whose labels do not depend on the tasks, without truth.

    The covariance of the workers' one-hot labels, summed over classes, is fitted off the diagonal
    by :math:`V V^\top` of rank K; a spammer's row of V is zero. 2-means splits the rows, and the
    shorter cluster is suspected. Because 2-means always finds suspects, a permutation test decides:

    1. A worker is *silent* if the test does not reject independence of the others' weighted votes
       at ``level``, although a typical worker on the same tasks would be at twice the critical
       value. A silent worker is a spammer if its labels carry, with 95% confidence, under an eighth
       of the typical information, which grows with the square of the slope.
    2. If there are three such spammers, and one in twenty, then suspects within three times the
       scatter of the silent workers are spammers as well.

    Parameters
    ----------
    labels : CrowdLabels
    fit : fitted method, optional
        A fit with a label law, for score, capacity, information and accuracy; otherwise a
        fit of the default method is used.
    level : float
                Significance level of the test.
    ridge : float, optional
        Ridge of the covariance fit; by default the one that predicts held-out pairs best.
    random_state : int, Generator or None
        Random state of the folds of pairs and of the starts of 2-means.
    pruning : bool, default True
        Whether to measure what the removal of the spammers would change, for the remedy. This needs
        up to twelve Dawid-Skene fits if there are spammers.

    Notes
    -----
    If the shorter cluster's centre is more than half as long as the other's, the rows point in two
    directions: two groups of honest workers who share few tasks. Then the fit is repeated with one
    rank less, down to one. If the ridge shrinks all rows to zero although some pair agrees
    significantly, as with two honest workers among spammers, the smallest ridge is used.

    References
    ----------
    P. A. Traganitis and G. B. Giannakis (2021). Identifying spammers to boost crowdsourced
    classification. IEEE ICASSP.

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
    check_number("level", level, 0.0, 1.0)
    rng = as_generator(random_state)
    pairs = pair_moments(labels, min_shared=2, max_pairs=MAX_PAIRS)
    if labels.n_classes < 2 or pairs.n_pairs == 0:
        raise NotApplicable(
            "Spammers cannot be looked for: no two workers share two tasks."
            if labels.n_classes >= 2
            else "Spammers cannot be looked for: there is only one class."
        )
    rows = _covariance_rows(pairs, ridge, rng)
    test = association(labels, rows.vote_weight)
    verdict = _judge(labels, rows.low, test, level)
    model = fit_with_law(labels, fit)
    law = model.label_law()
    confusion = law.confusion(np.arange(labels.n_workers))
    accused = verdict["spammer"] | verdict["extreme"]
    return SpammerReport(
        workers=labels.workers,
        n_labels=labels.labels_per_worker,
        row_norm=np.linalg.norm(rows.values, axis=1),
        score=spammer_score(confusion),
        capacity=channel_capacity(confusion, tol=1e-5),  # tolerance in bits
        information=mutual_information(confusion, law.class_prior),
        accuracy=model.worker_accuracy_,
        n_tasks=labels.n_tasks,
        ridge=rows.ridge,
        rank=rows.values.shape[1],
        z=test.z,
        _pruning=effect_of_pruning(labels, accused) if pruning and accused.any() else None,
        **verdict,
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Fitted rows, the shorter cluster, and each row's component along the longer centre."""

    values: Floats
    low: Mask
    vote_weight: Floats
    ridge: float


def _covariance_rows(pairs: PairMoments, ridge: float | None, rng: np.random.Generator) -> _Rows:
    present = np.zeros(pairs.n_workers, dtype=bool)
    present[pairs.first] = present[pairs.second] = True
    for rank in range(pairs.n_classes, 0, -1):
        fit = RowFit(pairs, rank)
        chosen = fit.choose_ridge(rng)[0] if ridge is None else ridge
        values = fit.rows(chosen)
        if (
            ridge is None
            and np.linalg.norm(values, axis=1).max() < VANISHED
            and pair_z(pairs).max() > CERTAIN
        ):
            # Two honest workers among spammers form one pair, which no other pair predicts.
            chosen = float(RIDGES[0])
            values = fit.rows(chosen)
        low = np.zeros(pairs.n_workers, dtype=bool)
        low[present], centres = two_means(values[present], rng)
        lengths = np.linalg.norm(centres, axis=1)
        if lengths[0] <= SHORT * lengths[1]:
            break
    else:
        low[:] = False  # no worker stands out: only the individual test decides
        centres[1] = values[present].sum(axis=0)
    direction = centres[1] / max(float(np.linalg.norm(centres[1])), 1e-300)
    return _Rows(values, low, np.maximum(values @ direction, 0.0), chosen)


def _judge(labels: CrowdLabels, low: Mask, test: Association, level: float) -> dict[str, Any]:
    """Apply the test: see find_spammers."""
    from scipy.special import ndtri

    critical = float(-ndtri(level / 2))
    clear = (test.z > critical) & np.isfinite(test.error)
    typical = float(np.median(test.slope[clear])) if clear.any() else 0.0
    scale = typical if typical > 0 else 1.0
    slope, error = test.slope / scale, test.error / scale
    # Few labels are never significant: even a perfect worker's z is at most √(n - 1).
    enough = labels.labels_per_worker - 1 >= (2 * critical) ** 2
    testable = enough & (test.typical_error / scale * 2 * critical <= 1) & (typical > 0)
    silent = testable & (np.abs(test.z) <= critical)
    sure = testable & (np.abs(slope) + SURE * error <= np.sqrt(LITTLE))
    spammer = silent & sure
    if spammer.sum() >= max(FEW, FEW_SHARE * testable.sum()):
        scatter = float(np.std(slope[silent], ddof=1))
        # The uncertainty of a worker's slope counts in the worker's favour.
        near = slope <= SCATTER * scatter
        near &= -slope <= SCATTER * np.hypot(error, scatter)
        spammer |= low & testable & near
    extreme = sure & (labels.labels_per_worker >= EXTREME_SHARE * labels.n_tasks)
    return {
        "spammer": spammer,
        "extreme": extreme,
        "association": slope,
        "standard_error": error,
        "testable": testable,
        "has_signal": bool(typical > 0),
    }
