"""Workers who mark texts badly: spammers, and habits such as wide limits or wrong types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.part import NotApplicable, Table, WorkerPart, no_signal
from wisecrowd.core.statistics import (
    WIDTH,
    benjamini_hochberg,
    following,
    robust_variance,
    student_tail,
)
from wisecrowd.core.types import Floats, Longs, Mask
from wisecrowd.kinds.sequences.audit.view import SequenceView, sequence_view
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sequences.metrics import SPAN_ERRORS

FEWEST = 8  # sequences of a worker who is tested; spans, of one who is called random
ALMOST_ALL = 0.95  # share of tokens inside of spans
LITTLE = 0.4  # share of the typical agreement that a random worker certainly does not reach
SURE = 1.645  # standard errors: one-sided 95%
NOTHING = 0.02  # spans per span of the others, up to which a worker marks nothing
LAZY = 0.25  # share of the median number of spans that a lazy worker may mark
CHANCE = 0.001  # probability that such a lazy worker marks as little
EVERYTHING = 0.9  # share of tokens
LIMITS = ("too_long", "too_short", "split")
OF = {  # what rates are shares of; the worker's spans otherwise
    "missed": "spans of the others",
    "too_short": "spans of several tokens",
    "split": "spans of several tokens",
}
HABITS = (*LIMITS, "wrong_type", "missed", "phantom")
OTHERS = 2  # other workers of a sequence that is judged
FEWEST_SPANS = 15  # spans of a worker who is tested
FEW_WORKERS = 8  # below, the usual spread between workers is not known
APART = 0.15  # least difference from the typical rate
FAR = 0.3  # the same for missed and phantom spans, and for the spans of one type
MOST_SPANS = 0.5  # a higher rate is a habit, however much workers differ
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
class SequenceSpammers(WorkerPart):
    """Result of the search for workers whose spans have no meaning; one entry per worker.

    Attributes
    ----------
    workers, n_sequences, n_spans
        Ids, numbers of sequences that others tagged too, and numbers of marked spans.
    n_expected : int
        Spans that the other workers support in these sequences.
    agreement, low, high
        Agreement with the other workers' tags beyond chance (kappa of types, token by token), with
        its 95% interval over sequences: 1 is perfect, 0 is chance.
    marked : float
        Share of tokens inside of spans.
    testable : bool
        Whether a typical worker would have been distinguished from a random one.
    nothing, random : bool
        Whether the worker marks nothing, or spans that are unrelated to the others'.
    typical : float
        Median agreement of the workers with significant agreement; 0 without any.
    """

    table = "spammers"
    noun = "the sequences"

    workers: NDArray[Any]
    n_sequences: Longs
    n_spans: Longs
    n_expected: Longs
    agreement: Floats
    low: Floats
    high: Floats
    marked: Floats
    testable: Mask
    nothing: Mask
    random: Mask
    typical: float

    @property
    def accused(self) -> Mask:
        """(n_workers,): workers whom pruning removes."""
        return self.nothing | self.random

    def findings(self) -> list[Finding]:
        """Return workers who mark nothing or at random, and the lack of any signal."""
        check = "Check the columns of tasks and tags, and whether all workers saw the same texts."
        everything = self.random & (self.marked >= EVERYTHING)
        how = for_reader(
            'wisecrowd.audit.clean(data, ["spammers"])', "wisecrowd audit FILE --prune-to CLEAN.csv"
        )
        remedy = (
            f"Look at some of their texts; prune them ({how}), or keep them and use bsc, which "
            "gives them little weight. Do not give them more tasks."
        )
        lost = (
            [no_signal("spans", "the texts do not belong together", check)]
            if self.typical == 0
            else []
        )
        return [
            *lost,
            *self.about("marks-nothing", self.nothing,
                        "marked nothing, or nearly nothing, where others agree on spans", remedy),
            *self.about("marks-everything", everything,
                        f"marked {EVERYTHING:.0%} of all tokens or more, whatever the text",
                        remedy),
            *self.about("random-spans", self.random & ~everything,
                        "marked spans that have nothing to do with the others'", remedy),
        ]  # fmt: skip


def find_sequence_spammers(
    data: CrowdSequences,
    *,
    level: float = 0.01,
    view: SequenceView | None = None,
    pruning: bool = True,
) -> SequenceSpammers:
    r"""Find workers who mark nothing, everything, or at random, without truth.

    The types of a worker's tags are compared with those that the other workers support, token by
    token, as :math:`\kappa_j = (o_j - e_j) / (1 - e_j)` with the observed and the expected share of
    equal types. Tags of a sequence depend on each other, so the standard error is one over
    sequences. A worker with eight spans, where the others support eight, is *random* if
    :math:`\kappa_j = 0` is not rejected, although it would be at twice the critical value for a
    typical worker, and if :math:`\kappa_j` is, with 95% confidence, under 0.4 of the typical
    one. A worker marks *nothing* if the number of spans is below 2% of those that the others
    support, and if that is not explained by a worker who marks a quarter of what the median worker
    does.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> made = simulate.sequences(120, 8, simulate.PerTask(4))
    >>> report = find_sequence_spammers(made.data)
    >>> report.accused.sum(), bool(report.typical > 0.5)
    (np.int64(0), True)
    """
    from scipy.special import pdtr

    check_number("level", level, 0.0, 1.0)
    view = sequence_view(data) if view is None else view
    shared = view.others > 0
    n = np.bincount(data.worker[shared], minlength=data.n_workers)
    enough = n >= FEWEST
    if np.count_nonzero(enough) < 2:
        raise NotApplicable(
            f"Workers cannot be compared: fewer than two have {FEWEST} sequences that others "
            "tagged too."
        )
    kappa, own_error, marked = _agreement(view, shared)
    usual = own_error[enough & (own_error > 0)] ** 2 * n[enough & (own_error > 0)]
    typical_error = np.sqrt(np.median(usual) if len(usual) else 0.0) / np.sqrt(np.maximum(n, 1))
    error = np.maximum(np.maximum(own_error, typical_error / 2), 1e-12)
    found = following(kappa, 1 / error, enough, level)
    spans, expected = (
        np.bincount(data.worker[one.sequence[shared[one.sequence]]], minlength=data.n_workers)
        for one in (view.own, view.consensus)
    )
    ratio = spans / np.maximum(expected, 1)
    known = ratio[enough & (expected > 0)]
    lazy = max(float(np.quantile(known, 0.1)), LAZY * float(np.median(known))) if len(known) else 0
    chance = pdtr(spans, lazy * expected)
    nothing = enough & (ratio <= NOTHING) & (chance < CHANCE / data.n_workers) & (found.typical > 0)
    silent = found.silent & (kappa + SURE * error <= LITTLE * found.typical)
    if found.typical == 0 and not (enough & (expected >= FEWEST)).any():
        raise NotApplicable("Workers cannot be compared: there are too few spans.")
    if found.typical == 0 and np.median(marked[enough]) >= ALMOST_ALL:
        raise NotApplicable(
            "Workers cannot be compared: almost all of the texts is marked, so that agreement "
            "beyond chance cannot be seen."
        )
    return SequenceSpammers(
        data.workers, n, spans, expected, kappa, kappa - WIDTH * error, kappa + WIDTH * error,
        marked, found.testable, nothing,
        silent & ~nothing & (np.minimum(spans, expected) >= FEWEST), found.typical,
    )  # fmt: skip


def _agreement(view: SequenceView, shared: Mask) -> tuple[Floats, Floats, Floats]:
    """Return the kappa of each worker, its standard error, and the share of marked tokens."""
    data, J = view.data, view.data.n_workers
    kind = data.tag_scheme.type_of + 1
    K = int(kind.max()) + 1
    sequence = np.repeat(np.arange(data.n_annotations), np.diff(data.pointer))
    use = shared[sequence]
    sequence, worker = sequence[use], data.token_worker[use].astype(np.int64)
    own, others = kind[data.tags[use]], kind[view.path[use]]
    total = np.maximum(np.bincount(worker, minlength=J), 1)
    given, wanted = (
        np.bincount(worker * K + one, minlength=J * K).reshape(J, K) / total[:, None]
        for one in (own, others)
    )
    expected = (given * wanted).sum(axis=1)
    excess = np.bincount(worker, own == others, J) / total - expected
    room = np.maximum(1 - expected, 1e-12)
    pull = (own == others) - wanted[worker, own] - given[worker, others] + expected[worker]
    each = np.bincount(sequence, pull - excess[worker], data.n_annotations)
    error = np.sqrt(np.bincount(data.worker, each**2, J)) / total / room
    return excess / room, error, 1 - given[:, 0]


@dataclass(frozen=True, eq=False)
class SpanHabits(WorkerPart):
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
    n_spans: Longs
    n_expected: Longs
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
        who = self.largest(self.habit[:, h], self.rate[:, h].round(9))
        of = OF.get(HABITS[h], "spans")
        detail = ""
        if HABITS[h] == "wrong_type":
            detail = f" The most frequent confusions of the first are {self._confused(who[0])}."
        return Finding(
            name, "low", float(self.rate[who[0], h]), tuple(self.workers[who].tolist()),
            f"{self.named(who)} {did}, in up to {self.rate[who[0], h]:.0%} of the {of}, which is "
            f"the score; {self.typical[h]:.0%} is typical.{detail}",
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

    annotation: Longs
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
    tested = number >= FEWEST_SPANS
    if np.count_nonzero(tested.any(axis=1)) < 2:
        raise NotApplicable(
            f"Fewer than two workers have {FEWEST_SPANS} spans that can be compared."
        )
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


def _rates(data: CrowdSequences, events: _Events) -> tuple[Floats, Floats, Longs]:
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
