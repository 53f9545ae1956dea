"""Workers who mark nothing in texts, everything, or spans at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.audit.sequence_view import SequenceView, sequence_view
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.sequences import CrowdSequences
from wisecrowd.families.dependence import benjamini_hochberg

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

FEWEST = 8  # sequences of a worker who is tested; spans, of one who is called random
ALMOST_ALL = 0.95  # share of tokens inside of spans
LITTLE = 0.4  # share of the typical agreement that a random worker certainly does not reach
SURE = 1.645  # standard errors: one-sided 95%
WIDTH = 1.959963984540054
NOTHING = 0.02  # spans per span of the others, up to which a worker marks nothing
LAZY = 0.25  # share of the median number of spans that a lazy worker may mark
CHANCE = 0.001  # probability that such a lazy worker marks as little
EVERYTHING = 0.9  # share of tokens


@dataclass(frozen=True, eq=False)
class SequenceSpammers(Part):
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

    workers: NDArray[Any]
    n_sequences: Ints
    n_spans: Ints
    n_expected: Ints
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

    def tables(self) -> dict[str, Table]:
        """Return the table of workers."""
        names = ("n_sequences", "n_spans", "n_expected", "agreement", "low", "high", "marked",
                 "testable", "nothing", "random")  # fmt: skip
        return {"spammers": {"worker": self.workers} | {n: getattr(self, n) for n in names}}

    def findings(self) -> list[Finding]:
        """Return workers who mark nothing or at random, and the lack of any signal."""
        found = []
        if self.typical == 0:
            found.append(Finding(
                "no-signal", "high", 1.0, (),
                "No worker's spans follow those of the others: they are all random, or the texts "
                "do not belong together.",
                "Check the columns of tasks and tags, and whether all workers saw the same texts.",
            ))  # fmt: skip
        everything = self.random & (self.marked >= EVERYTHING)
        kinds = (
            ("marks-nothing", self.nothing, "marked nothing, or nearly nothing, where others agree "
             "on spans"),
            ("marks-everything", everything, f"marked {EVERYTHING:.0%} of all tokens or more, "
             "whatever the text"),
            ("random-spans", self.random & ~everything, "marked spans that have nothing to do with "
             "the others'"),
        )  # fmt: skip
        return found + [self._finding(name, who, did) for name, who, did in kinds if who.any()]

    def _finding(self, name: str, who: Mask, did: str) -> Finding:
        ids = self.workers[who][np.argsort(-self.n_sequences[who], kind="stable")]
        share = float(self.n_sequences[who].sum() / max(int(self.n_sequences.sum()), 1))
        severity = "high" if share >= 0.2 else "medium" if share >= 0.02 else "low"
        how = for_reader(
            'wisecrowd.audit.clean(data, ["spammers"])',
            "wisecrowd audit FILE --prune-to CLEAN.csv",
        )
        return Finding(
            name, severity, share, tuple(ids.tolist()),
            f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}; {share:.1%} of "
            f"the sequences, which is the score) {did}.",
            f"Look at some of their texts; prune them ({how}), or keep them and use bsc, which "
            "gives them little weight. Do not give them more tasks.",
        )  # fmt: skip


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
    from scipy.special import ndtr, ndtri, pdtr

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
    critical = float(-ndtri(level / 2))
    z = kappa / error
    clear = enough & (benjamini_hochberg(np.where(enough, ndtr(-z), 1.0)) <= level)
    typical = float(np.median(kappa[clear])) if clear.any() else 0.0
    testable = enough & (typical / error >= 2 * critical)
    spans, expected = _span_counts(view, shared)
    ratio = spans / np.maximum(expected, 1)
    known = ratio[enough & (expected > 0)]
    lazy = max(float(np.quantile(known, 0.1)), LAZY * float(np.median(known))) if len(known) else 0
    chance = pdtr(spans, lazy * expected)
    nothing = enough & (ratio <= NOTHING) & (chance < CHANCE / data.n_workers) & (typical > 0)
    silent = testable & (np.abs(z) <= critical) & (kappa + SURE * error <= LITTLE * typical)
    if not clear.any() and not (enough & (expected >= FEWEST)).any():
        raise NotApplicable("Workers cannot be compared: there are too few spans.")
    if not clear.any() and np.median(marked[enough]) >= ALMOST_ALL:
        raise NotApplicable(
            "Workers cannot be compared: almost all of the texts is marked, so that agreement "
            "beyond chance cannot be seen."
        )
    return SequenceSpammers(
        data.workers, n, spans, expected, kappa, kappa - WIDTH * error, kappa + WIDTH * error,
        marked, testable, nothing,
        silent & ~nothing & (np.minimum(spans, expected) >= FEWEST), typical,
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


def _span_counts(view: SequenceView, shared: Mask) -> tuple[Ints, Ints]:
    """Return the numbers of spans of each worker and of the others, in shared sequences."""
    data = view.data
    found = []
    for spans in (view.own, view.consensus):
        at = spans.sequence[shared[spans.sequence]]
        found.append(np.bincount(data.worker[at], minlength=data.n_workers))
    return found[0], found[1]
