"""Copied texts: pairs of workers who share more mistakes, letter by letter, than others do."""

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
from wisecrowd.metrics.row_pairs import pairs_within

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

FEWEST_WORDS = 3  # of a text that counts; short ones are equal by chance
FEWEST_WORKERS = 4  # of a task; with fewer, two equal texts may well be right
FEWEST_TEXTS = 4  # that both workers of a pair have wrong
COPIED = 0.75  # least share of equal texts of copiers; two good workers share half at times
USUAL_SHARE, USUAL_PAIRS = 0.1, 10.0  # equal wrong texts before any are seen


@dataclass(frozen=True, eq=False)
class TextCopies(Part):
    """Pairs of workers who share tasks with wrong texts, the most similar first.

    Attributes
    ----------
    first, second : ids
    n_wrong, n_equal : int
        Number of tasks to which both give a text that the others do not give, and how many of
        these texts are equal as they are written.
    q : float
        False discovery rate at which they share more such texts than other pairs.
    copied : bool
    usual : float
        Share of equal texts among those that two workers have wrong.
    """

    first: NDArray[Any]
    second: NDArray[Any]
    n_wrong: Ints
    n_equal: Ints
    q: Floats
    copied: Mask
    usual: float

    def tables(self) -> dict[str, Table]:
        """Return the table of pairs."""
        names = ("first", "second", "n_wrong", "n_equal", "q", "copied")
        return {"copies": {name: getattr(self, name) for name in names}}

    def findings(self) -> list[Finding]:
        """Return the workers of pairs with copied texts."""
        if not self.copied.any():
            return []
        both = np.column_stack([self.first, self.second])[self.copied].ravel().tolist()
        ids = np.array(list(dict.fromkeys(both)), dtype=object)
        best = int(np.flatnonzero(self.copied)[0])
        share = float(self.n_equal[best] / self.n_wrong[best])
        return [Finding(
            "copied-texts", "medium", share, tuple(ids.tolist()),
            f"{len(ids)} workers ({describe_ids(ids)}) share texts letter by letter that nobody "
            f"else gives: {self.n_equal[best]} of {self.n_wrong[best]} between "
            f"{both[0]!r} and {both[1]!r}, which is the score, where other "
            f"pairs share {self.usual:.0%}.",
            "Count them as one worker: copies outvote others without knowing more.",
        )]  # fmt: skip


def find_copied_texts(
    data: CrowdTexts, *, level: float = 0.01, view: TextView | None = None
) -> TextCopies:
    """Find pairs of workers who copy from each other.

    Right texts are equal anyway, so only those of tasks with four workers or more count that no
    third worker gives, and that differ from the weighted vote of all. Two workers have both such
    texts, of three words or more, in :math:`n` tasks. That :math:`k` of them are equal as written
    is tested against the binomial distribution with the share among all pairs, at a false discovery
    rate of ``level``; a finding needs four such tasks, and three quarters of them equal.

    Examples
    --------
    >>> said = ["the", "the", "the", "no", "no"]
    >>> rows = [(i, j, f"these are {said[j]} words {i}") for i in range(8) for j in range(5)]
    >>> report = find_copied_texts(CrowdTexts.from_arrays(*zip(*rows)))
    >>> report.first[report.copied], report.second[report.copied]
    (array([3]), array([4]))
    """
    check_number("level", level, 0.0, 1.0)
    view = text_view(data) if view is None else view
    a, b = pairs_within(data.indptr)
    kept = _both_wrong(view, a, b)
    a, b = a[kept], b[kept]
    if not len(a):
        raise NotApplicable(
            "Copies need tasks of four workers, two of whom differ from the others."
        )
    from scipy.special import bdtrc

    equal = (data.text[a] == data.text[b]).astype(np.int64)
    key = data.worker[a].astype(np.int64) * data.n_workers + data.worker[b]
    pair, place = np.unique(key, return_inverse=True)
    n_wrong = np.bincount(place.ravel(), minlength=len(pair))
    n_equal = np.bincount(place.ravel(), equal, len(pair)).astype(np.int64)
    usual = _usual_share(n_wrong, n_equal)
    tested = n_wrong >= FEWEST_TEXTS
    chance = np.where(n_equal > 0, bdtrc(np.maximum(n_equal - 1, 0), n_wrong, usual), 1.0)
    q = np.ones(len(pair))
    if tested.any():
        q[tested] = benjamini_hochberg(chance[tested])
    copied = (q <= level) & (n_equal >= COPIED * n_wrong)
    order = np.lexsort((pair, -n_equal, q, ~copied))
    ids = data.workers
    return TextCopies(
        ids[(pair // data.n_workers)[order]], ids[(pair % data.n_workers)[order]], n_wrong[order],
        n_equal[order], q[order], copied[order], usual,
    )  # fmt: skip


def _both_wrong(view: TextView, a: Ints, b: Ints) -> Mask:
    """Return the pairs of annotations with texts that the other workers of the task do not give."""
    data, votes = view.data, view.votes
    key = np.unique(votes.variant * data.n_workers + data.worker)
    givers = np.bincount(key // data.n_workers, minlength=len(votes.variant_task))
    same = votes.variant[a] == votes.variant[b]
    alone = np.where(same, givers[votes.variant[a]] == 2,
                     (givers[votes.variant[a]] == 1) & (givers[votes.variant[b]] == 1))  # fmt: skip
    words = np.minimum(votes.length[votes.variant[a]], votes.length[votes.variant[b]])
    judged = (view.others.size[a] >= FEWEST_WORKERS) & ~view.right[a] & ~view.right[b]
    two = data.worker[a] != data.worker[b]
    return np.asarray(alone & judged & two & (words >= FEWEST_WORDS))


def _usual_share(n_wrong: Ints, n_equal: Ints) -> float:
    """Return the share of equal texts of ordinary pairs: those with many are cut off."""
    share = n_equal / n_wrong
    usual = share < COPIED
    usual |= n_wrong < FEWEST_TEXTS
    total = float(n_equal[usual].sum() + USUAL_SHARE * USUAL_PAIRS)
    return min(total / float(n_wrong[usual].sum() + USUAL_PAIRS), COPIED)
