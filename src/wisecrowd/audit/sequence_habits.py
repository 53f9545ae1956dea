"""Habits of workers who mark spans: limits, types, misses and inventions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.audit.robust_scale import robust_variance, student_tail
from wisecrowd.audit.sequence_spammers import find_sequence_spammers
from wisecrowd.audit.sequence_view import SequenceView, sequence_view
from wisecrowd.core.findings import Finding
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.sequences import CrowdSequences
from wisecrowd.core.span_errors import SPAN_ERRORS
from wisecrowd.families.dependence import benjamini_hochberg

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

LIMITS = ("too_long", "too_short", "split")
OF = {  # what rates are shares of; the worker's spans otherwise
    "missed": "spans of the others",
    "too_short": "spans of several tokens",
    "split": "spans of several tokens",
}
HABITS = (*LIMITS, "wrong_type", "missed", "phantom")
OTHERS = 2  # other workers of a sequence that is judged
FEWEST = 15  # spans of a worker who is tested
FEW_WORKERS = 8  # below, the usual spread between workers is not known
APART = 0.15  # least difference from the typical rate
FAR = 0.3  # the same for missed and phantom spans, and for the spans of one type
MOST_SPANS = 0.5  # a higher rate is a habit, however much workers differ
SURE = 1.645  # standard errors: one-sided 95%
MOST_NAMED = 3  # confusions of types that a finding names
DID = {
    "too_long": ("long-spans", "marked spans that contain a span of the others and go beyond it"),
    "too_short": ("short-spans", "stopped too early or started too late: their spans are parts of "
                  "those of the others"),
    "split": ("split-spans", "split spans of the others into parts"),
    "wrong_type": ("type-confusion", "chose another type than the others"),
    "missed": ("missed-spans", "missed spans that the others mark"),
    "phantom": ("phantom-spans", "marked spans where the others mark nothing"),
}  # fmt: skip
REMEDY = {
    "too_long": "Say in the instructions where spans end, with examples such as titles and "
                "punctuation.",
    "too_short": "Say in the instructions where spans end, with examples such as titles and "
                 "punctuation.",
    "split": "Say in the instructions that neighbouring words of one name are one span.",
    "wrong_type": "Explain the difference between these types, with examples.",
    "missed": "Show them missed spans; ask a further worker about their texts.",
    "phantom": "Explain what is not to be marked, with examples.",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class SpanHabits(Part):
    """How each worker's spans differ from those that the other workers support.

    Attributes
    ----------
    workers, n_spans, n_expected : (n_workers,)
        Ids, marked spans, and spans of the others in the same sequences.
    rate, error : (n_workers, 6)
        Share of spans with each of ``HABITS``, and its standard error over sequences. Too long and
        wrong type are shares of the worker's spans that touch one of the others; too short and
        split of those that touch one of two tokens or more; missed is a share of the others' spans,
        phantom of the worker's.
    q : (n_workers, 6)
        False discovery rate at which the rate is higher than workers usually differ.
    habit : (n_workers, 6) bool
    typical : (6,)
        Median rates.
    types : (n_types,)
    confusion : (n_workers, n_types, n_types) float
        Spans by the type of the others (rows) and the worker's type.
    """

    workers: NDArray[Any]
    n_spans: Ints
    n_expected: Ints
    rate: Floats
    error: Floats
    q: Floats
    habit: Mask
    typical: Floats
    types: NDArray[Any]
    confusion: Floats

    def tables(self) -> dict[str, Table]:
        """Return ``span_habits`` by worker, and ``type_confusions``: worker, type, given, count."""
        worker, type_, given = np.nonzero(self.confusion)
        return {
            "span_habits": {
                "worker": self.workers, "n_spans": self.n_spans, "n_expected": self.n_expected,
                **{name: self.rate[:, h] for h, name in enumerate(HABITS)},
                **{f"{name}_habit": self.habit[:, h] for h, name in enumerate(HABITS)},
            },
            "type_confusions": {
                "worker": self.workers[worker], "type": self.types[type_],
                "given": self.types[given], "count": self.confusion[worker, type_, given],
            },
        }  # fmt: skip

    def findings(self) -> list[Finding]:
        """Return one finding for each habit that a worker has."""
        return [self._finding(h) for h in range(len(HABITS)) if self.habit[:, h].any()]

    def _finding(self, h: int) -> Finding:
        name, did = DID[HABITS[h]]
        who = np.flatnonzero(self.habit[:, h])
        who = who[np.argsort(-self.rate[who, h].round(9), kind="stable")]
        ids = self.workers[who]
        of = OF.get(HABITS[h], "spans")
        detail = ""
        if HABITS[h] == "wrong_type":
            detail = f" The most frequent confusions of the first are {self._confused(who[0])}."
        return Finding(
            name, "low", float(self.rate[who[0], h]),
            tuple(ids.tolist()),
            f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}) {did}, in up to "
            f"{self.rate[who[0], h]:.0%} of the {of}, which is the score; {self.typical[h]:.0%} is "
            f"typical.{detail}",
            REMEDY[HABITS[h]],
        )  # fmt: skip

    def _confused(self, j: int) -> str:
        """Return the most frequent confusions of a worker in words."""
        table = self.confusion[j] * (1 - np.eye(len(self.types)))
        order = np.argsort(-table, axis=None, kind="stable")[:MOST_NAMED]
        true, given = np.unravel_index(order, table.shape)
        return ", ".join(
            f"{describe_ids(self.types[[a]])} as {describe_ids(self.types[[b]])} "
            f"({table[a, b]:g} times)"
            for a, b in zip(true.tolist(), given.tolist(), strict=True) if table[a, b] > 0
        )  # fmt: skip


class _Events(NamedTuple):
    """Cases of a habit and their opportunities: the annotation of each, and whether it happened."""

    annotation: Ints
    happened: NDArray[Any]


def find_span_habits(
    data: CrowdSequences, *, level: float = 0.01, view: SequenceView | None = None
) -> SpanHabits:
    r"""Find workers whose spans differ from the others' in one way, much more often than usual.

    Sequences with two other workers or more count. The rate :math:`r_{jh}` of habit h is compared
    with the median rate. Honest workers differ too, so the variance of the difference is that over
    sequences plus a robust estimate of the variance between workers. A rate above one half is a
    habit however much workers differ. With fewer than eight workers only the latter is tested. A
    habit needs a false discovery rate below ``level`` among all workers and habits, and a rate that
    is, with 95% confidence, above the typical one by 15 percentage points (missed and phantom
    spans: 30, because careful and eager workers differ widely). Types are tested together and one
    by one. Workers who mark nothing, everything or at random have no habits besides.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> made = simulate.sequences(100, 12, simulate.PerTask(4))
    >>> find_span_habits(made.data).findings()
    []
    """
    check_number("level", level, 0.0, 1.0)
    view = sequence_view(data) if view is None else view
    judged = view.others >= OTHERS
    if not judged.any():
        raise NotApplicable("No task has three labels, so that nobody can be compared with two.")
    events = _events(view, judged)
    rate, error, number = (
        np.stack(parts, axis=1)
        for parts in zip(*(_rates(data, one) for one in events), strict=True)
    )
    tested = number >= FEWEST
    if np.count_nonzero(tested.any(axis=1)) < 2:
        raise NotApplicable(f"Fewer than two workers have {FEWEST} spans that can be compared.")
    typical = np.array([
        np.median(rate[tested[:, h], h]) if tested[:, h].any() else 0.0 for h in range(len(events))
    ])  # fmt: skip
    error = np.maximum(error, np.sqrt(typical * (1 - typical) / np.maximum(number, 1)))
    p = _p_values(rate, error, typical, tested)
    q = benjamini_hochberg(p.ravel()).reshape(p.shape)
    least = np.where(np.arange(len(events)) < len(LIMITS) + 1, APART, FAR)
    habit = tested & (q <= level) & (rate - SURE * error >= typical + least)
    habit &= ~_spammers(data, view)[:, None]
    n, kind = len(HABITS), HABITS.index("wrong_type")
    habit[:, kind] |= habit[:, n:].any(axis=1)
    q[:, kind] = q[:, [kind, *range(n, len(events))]].min(axis=1)
    count = [np.bincount(data.worker[one.annotation], minlength=data.n_workers) for one in events]
    return SpanHabits(
        data.workers, count[HABITS.index("phantom")], count[HABITS.index("missed")],
        np.where(number > 0, rate, np.nan)[:, :n], error[:, :n], q[:, :n], habit[:, :n],
        typical[:n], np.array(data.tag_scheme.types, dtype=object), _confusions(view, judged),
    )  # fmt: skip


def _spammers(data: CrowdSequences, view: SequenceView) -> Mask:
    """Return the workers whose spans have no meaning at all."""
    try:
        return find_sequence_spammers(data, view=view).accused
    except NotApplicable:
        return np.zeros(data.n_workers, dtype=bool)


def _events(view: SequenceView, judged: Mask) -> list[_Events]:
    """Return the events of each habit, then those of wrong types by the type of the others."""
    use = judged[view.own.sequence]
    touching = np.flatnonzero(use & (view.near >= 0))
    at, code, near = view.own.sequence[touching], view.code[touching], view.near[touching]
    several = (view.consensus.end - view.consensus.start)[near] > 1
    wrong = view.own.kind[touching] != view.consensus.kind[near]
    found = []
    for name in LIMITS:
        can = np.ones(len(at), dtype=bool) if name == "too_long" else several
        found.append(_Events(at[can], code[can] == SPAN_ERRORS.index(name)))
    found.append(_Events(at, wrong))
    wanted = judged[view.consensus.sequence]
    found.append(_Events(view.consensus.sequence[wanted], view.missed[wanted]))
    found.append(_Events(view.own.sequence[use], view.near[use] < 0))
    for kind in range(len(view.data.tag_scheme.types)):
        own = view.consensus.kind[near] == kind
        found.append(_Events(at[own], wrong[own]))
    return found


def _rates(data: CrowdSequences, events: _Events) -> tuple[Floats, Floats, Ints]:
    """Return the rate of each worker, its standard error over sequences, and the opportunities."""
    worker, J = data.worker[events.annotation], data.n_workers
    number = np.bincount(worker, minlength=J)
    rate = np.bincount(worker, events.happened, J) / np.maximum(number, 1)
    away = events.happened - rate[worker]
    each = np.bincount(events.annotation, away, data.n_annotations)
    error = np.sqrt(np.bincount(data.worker, each**2, J)) / np.maximum(number, 1)
    return rate, error, number


def _p_values(rate: Floats, error: Floats, typical: Floats, tested: Mask) -> Floats:
    """Return the p-value of every worker and habit; 1 if not tested."""
    from scipy.special import ndtr

    p = np.ones(rate.shape)
    for h in range(rate.shape[1]):
        who = np.flatnonzero(tested[:, h])
        p[who, h] = ndtr(-(rate[who, h] - MOST_SPANS) / np.maximum(error[who, h], 1e-12))
        if len(who) >= FEW_WORKERS:
            apart, variance = rate[who, h] - typical[h], error[who, h] ** 2
            spread = np.sqrt(variance + robust_variance(apart, variance))
            usual = student_tail(apart / np.maximum(spread, 1e-12), len(who))
            p[who, h] = np.minimum(1.0, 2 * np.minimum(p[who, h], usual))
    return p


def _confusions(view: SequenceView, judged: Mask) -> Floats:
    """Return spans that touch by worker, type of the others and type of the worker."""
    data, K = view.data, len(view.data.tag_scheme.types)
    use = judged[view.own.sequence] & (view.near >= 0)
    worker = data.worker[view.own.sequence[use]].astype(np.int64)
    cell = (worker * K + view.consensus.kind[view.near[use]]) * K + view.own.kind[use]
    size = data.n_workers * K * K
    require_memory(16 * size, f"Confusions of {K} types by {data.n_workers} workers",
                   "merge rare types, or leave them out")  # fmt: skip
    counts = np.bincount(cell, minlength=size)
    return counts.reshape(data.n_workers, K, K).astype(np.float64)
