"""Error rates of transcribers, and workers whose texts have nothing to do with the tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.audit.text_view import TextView, text_view
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.texts import CrowdTexts
from wisecrowd.families.dependence import benjamini_hochberg

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

FEWEST = 4  # answers of a worker that is tested
UNRELATED, ABOVE, MOST = 0.7, 0.25, 0.9  # error rate; above the typical one; at most this limit
REPEATED = 3  # times that a worker gives the same text alone, at least
HALF = 0.5  # of the worker's answers
WIDTH = 1.959963984540054


@dataclass(frozen=True, eq=False)
class TextErrors(Part):
    """Error rates of workers; arrays have one entry per worker.

    Attributes
    ----------
    workers, n_texts
        Ids, and numbers of answers to tasks that others answered too.
    error_rate, low, high
        Mean share of words that differ from the text of the others, with its 95% interval.
    q : float
        False discovery rate at which the error rate exceeds ``limit``.
    unrelated, empty, constant : bool
        Whether most words differ from the others'; and whether half of the answers are empty, or
        are one and the same text, where nobody else has given it.
    limit, typical : float
        Error rate of unrelated texts, and the median of all workers.
    """

    workers: NDArray[Any]
    n_texts: Ints
    error_rate: Floats
    low: Floats
    high: Floats
    q: Floats
    unrelated: Mask
    empty: Mask
    constant: Mask
    limit: float
    typical: float

    def tables(self) -> dict[str, Table]:
        """Return the table of workers."""
        names = ("n_texts", "error_rate", "low", "high", "q", "unrelated", "empty", "constant")
        return {"errors": {"worker": self.workers} | {name: getattr(self, name) for name in names}}

    def findings(self) -> list[Finding]:
        """Return workers with unrelated, empty and constant texts."""
        rest = self.unrelated & ~self.empty & ~self.constant
        remedy = "Do not give them more tasks; rover gives them little weight."
        sentences = {
            "empty-texts": (self.empty, "left half of their texts or more empty where everybody "
                            "else wrote something.", "Ask why: sound or pictures may not have "
                            "loaded. Do not count their empty texts as answers."),
            "constant-texts": (self.constant, "gave one and the same text to half of their tasks "
                               "or more, where nobody else did.", remedy),
            "unrelated-texts": (rest, "wrote texts that differ from those of the others in more "
                                f"than {self.limit:.0%} of the words.", remedy),
        }  # fmt: skip
        return [
            self._finding(name, who, says, what)
            for name, (who, says, what) in sentences.items()
            if who.any()
        ]

    def _finding(self, name: str, who: Mask, says: str, remedy: str) -> Finding:
        order = np.flatnonzero(who)
        order = order[np.argsort(-self.error_rate[order], kind="stable")]
        ids = self.workers[order]
        share = float(self.n_texts[who].sum() / max(int(self.n_texts.sum()), 1))
        severity = "high" if share >= 0.2 else "medium" if share >= 0.02 else "low"
        return Finding(
            name, severity, share, tuple(ids.tolist()),
            f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}; {share:.1%} of "
            f"all texts, which is the score) {says}",
            remedy,
        )  # fmt: skip


def find_text_errors(
    data: CrowdTexts, *, level: float = 0.05, view: TextView | None = None
) -> TextErrors:
    r"""Measure error rates, and find workers whose texts do not belong to the tasks.

    Texts of a worker are unrelated if a t-test rejects that the mean error is at most the limit, at
    a false discovery rate of ``level``. The limit is 0.7 or, in a crowd that disagrees, a quarter
    above the typical error rate, at most 0.9. A text counts as constant if a worker gives it three
    times or more, to half of the tasks or more, and no other worker of these tasks does.

    Examples
    --------
    >>> rows = [(i, j, f"text number {i}" if j < 4 else "ok") for i in range(6) for j in range(5)]
    >>> report = find_text_errors(CrowdTexts.from_arrays(*zip(*rows)))
    >>> report.workers[report.constant]
    array([4])
    """
    check_number("level", level, 0.0, 1.0)
    view = text_view(data) if view is None else view
    if not view.compared.any():
        raise NotApplicable("Error rates need tasks with texts of two workers, and there are none.")
    from scipy.special import stdtr

    testable = view.n >= FEWEST
    limit = float(min(max(UNRELATED, view.typical + ABOVE), MOST))
    q = np.ones(data.n_workers)
    excess = (view.rate[testable] - limit) / view.rate_error[testable]
    if testable.any():
        q[testable] = benjamini_hochberg(stdtr(view.n[testable] + 2.0, -excess))
    empty, constant = _repeated(view)
    half = WIDTH * view.rate_error
    return TextErrors(
        data.workers, view.n, view.rate, np.clip(view.rate - half, 0, 1),
        np.clip(view.rate + half, 0, 1), q, q <= level, empty, constant, limit, view.typical,
    )  # fmt: skip


def _repeated(view: TextView) -> tuple[Mask, Mask]:
    """Return the workers who repeat the empty text, and another one, where nobody else has it."""
    data, votes = view.data, view.votes
    rows = np.flatnonzero(view.alone)
    n_texts = len(votes.rank) + 1
    key = data.worker[rows].astype(np.int64) * n_texts + view.text_rank[rows]
    pair, first, count = np.unique(key, return_index=True, return_counts=True)
    worker = pair // n_texts
    often = (count >= REPEATED) & (count >= HALF * view.n[worker])
    is_empty = votes.length[votes.variant[rows[first]]] == 0
    empty, constant = np.zeros(data.n_workers, dtype=bool), np.zeros(data.n_workers, dtype=bool)
    empty[worker[often & is_empty]] = True
    constant[worker[often & ~is_empty]] = True
    return empty, constant
