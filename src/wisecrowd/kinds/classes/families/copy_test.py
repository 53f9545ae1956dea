r"""Test of pairs of workers for labels that one copies from the other.

Given the state s of a task (class and difficulty), two independent workers give labels l and m with
probability :math:`M(l, m) = \sum_s w(s) f_a(l \mid s) f_b(m \mid s)`, where w is the posterior of
the rest of the crowd. If the share c of the labels is copied, the probability is
:math:`(1 - c) M(l, m) + c\, 1\{l = m\} P(l)`. Equal wrong labels are much stronger evidence for
copying than equal right ones, and experts, who agree because they are right, are not suspicious.

The statistic is the signed root of the likelihood ratio. The null hypothesis has the best skills
for *this pair*: if the rest of the crowd knows too little to tell skill from copying, skill is
assumed. The scores of all other pairs are the empirical null distribution.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.statistics import benjamini_hochberg
from wisecrowd.core.types import Floats, Longs, Mask
from wisecrowd.kinds.classes.families.copy_reference import Reference
from wisecrowd.kinds.classes.families.dependence import upper_tail
from wisecrowd.kinds.classes.families.moments.pair_moments import PairMoments

MOST_COMPARISONS = 1_000_000  # pairs of labels that are compared
MOST_IN_DETAIL = 300_000  # of these, for the null hypothesis with skills for the pair
LEAST_COMPARISONS = 200  # of each pair, if it has them
BLOCK = 4_000_000  # numbers in a temporary array
COPIED = 0.995  # largest share of copied labels
NOTEWORTHY = 2.5  # standard errors from which the skills of a pair are fitted
BISECTIONS = 20
COMPETENT = 5.0  # standard errors; workers who know nothing reach almost four by chance
SKILL_STEPS = 12
SKILLED = 0.8  # skill from which the fit starts
SMOOTHING = 0.1  # pseudo-count of a pair's confusion rates
MAD = 1.4826  # standard deviation of a normal distribution over its median absolute deviation


class Comparisons(NamedTuple):
    """Pairs of annotations of the same task by the two workers of a pair."""

    first: Longs  # rows of the annotations
    second: Longs
    pair: Longs
    weight: Floats


class CopyTest(NamedTuple):
    """Result for every pair; pairs that are not tested have z = 0 and p = 1."""

    expected: Floats
    copied: Floats
    z: Floats
    p: Floats
    q: Floats


def copy_test(ref: Reference, pairs: PairMoments, surprise: Floats, inside: Mask) -> CopyTest:
    """Test all pairs, or the most surprising ones and a sample of the others.

    Parameters
    ----------
    ref : Reference
    pairs : PairMoments
    surprise : (n_pairs,)
        Order in which pairs are tested if there are too many.
    inside : (n_pairs,) bool
        Pairs within suspected groups, which are no part of the null distribution.
    """
    found = comparisons(ref, pairs, _chances(pairs.n_shared, surprise))
    n = pairs.n_pairs
    joint, single, expected = _law_of(ref, pairs, found)
    n_compared = np.bincount(found.pair, found.weight, n)
    tested = n_compared > 0
    equal = _equal(ref, found)
    ratio = np.where(equal, single / joint, 0.0)
    copied, gain = most_likely_share(ratio, found.pair, found.weight, n)
    z = np.sign(copied) * np.sqrt(2 * np.maximum(gain, 0.0))
    centre, spread = null_scale(z[tested & ~inside])
    detail = np.flatnonzero(tested & (z > centre + NOTEWORTHY * spread))
    if len(detail):
        best = _with_own_skills(ref, pairs, found, detail, joint, single, copied)
        z[detail] = np.sign(copied[detail]) * np.sqrt(2 * np.maximum(best, 0.0))
    z = np.where(tested, (z - centre) / spread, 0.0)
    p = np.where(tested, upper_tail(z), 1.0)
    expected = np.where(tested, expected / np.maximum(n_compared, 1e-300), pairs.agreement)
    return CopyTest(expected, copied, z, p, benjamini_hochberg(p))


def null_scale(z: Floats) -> tuple[float, float]:
    """Return the centre and the scale of scores of independent pairs, at least 0 and 1.

    The scale is that of the upper half: scores of small samples have a long lower tail.

    Examples
    --------
    >>> null_scale(np.array([-9.0, -1.0, 0.0, 1.0, 2.0]))
    (0.0, 1.4826)
    """
    if len(z) == 0:
        return 0.0, 1.0
    centre = float(np.median(z))
    spread = MAD * float(np.median(z[z >= centre] - centre))
    return max(centre, 0.0), max(spread, 1.0)


def _chances(n_shared: Floats, surprise: Floats) -> Floats:
    """Return the share (n_pairs,) of each pair's shared tasks that is compared."""
    most = max(LEAST_COMPARISONS, MOST_COMPARISONS / max(len(n_shared), 1))
    share = np.minimum(1.0, most / n_shared)
    cost = share * n_shared
    if cost.sum() <= MOST_COMPARISONS:
        return share
    order = np.argsort(-surprise, kind="stable")
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[np.cumsum(cost[order]) <= MOST_COMPARISONS / 2]] = True
    others = np.flatnonzero(~chosen)
    step = max(1, int(np.ceil(2 * cost[others].sum() / MOST_COMPARISONS)))
    chosen[others[::step]] = True
    return np.where(chosen, share, 0.0)


def comparisons(ref: Reference, pairs: PairMoments, share: Floats) -> Comparisons:
    """Return the labels that pairs gave to shared tasks; tasks are drawn if ``share`` < 1."""
    data = ref.annotations
    rows = np.arange(len(data.task))
    after = np.searchsorted(data.task, data.task, side="right") - rows - 1
    lot = np.random.default_rng(0).random(data.n_tasks)
    keys = pairs.first.astype(np.int64) * pairs.n_workers + pairs.second
    total = np.cumsum(after)
    edges = np.searchsorted(total, np.arange(BLOCK, after.sum(), BLOCK))
    kept = []
    for begin, end in pairwise([0, *edges.tolist(), len(rows)]):
        times = after[begin:end]
        first = np.repeat(rows[begin:end], times)
        step = np.arange(len(first)) - np.repeat(np.cumsum(times) - times, times)
        second = first + 1 + step
        key = data.worker[first] * pairs.n_workers + data.worker[second]
        pair = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        some = np.flatnonzero((keys[pair] == key) & (lot[data.task[first]] < share[pair]))
        weight = data.weight[first[some]] * data.weight[second[some]]
        kept.append(Comparisons(first[some], second[some], pair[some], weight))
    return Comparisons(*map(np.concatenate, zip(*kept, strict=True)))


def _equal(ref: Reference, found: Comparisons) -> Mask:
    label = ref.annotations.label
    return np.asarray(label[found.first] == label[found.second])


def _law_of(
    ref: Reference, pairs: PairMoments, found: Comparisons
) -> tuple[Floats, Floats, Floats]:
    """Return M (n,) and P (n,) of the labels, and the expected number of equal ones (n_pairs,)."""
    law, data = ref.law, ref.annotations
    n_states = law.shape[1]
    joint, single = np.empty(len(found.pair)), np.empty(len(found.pair))
    time_in = np.zeros((pairs.n_pairs, n_states))
    step = max(1, BLOCK // n_states)
    for begin in range(0, len(found.pair), step):
        block = slice(begin, begin + step)
        a, b = found.first[block], found.second[block]
        pair, weight = found.pair[block], found.weight[block]
        state = ref.without(a, b)
        of_a = law[data.worker[a], :, data.label[a]] * state
        of_b = law[data.worker[b], :, data.label[b]]
        joint[block] = (of_a * of_b).sum(axis=1)
        single[block] = 0.5 * (of_a.sum(axis=1) + (of_b * state).sum(axis=1))
        for s in range(n_states):
            time_in[:, s] += np.bincount(pair, weight * state[:, s], pairs.n_pairs)
    same = np.zeros((pairs.n_pairs, n_states))
    for label in range(law.shape[2]):
        same += law[pairs.first, :, label] * law[pairs.second, :, label]
    return joint, single, (time_in * same).sum(axis=1)


def most_likely_share(
    ratio: Floats, pair: Longs, weight: Floats, n_pairs: int
) -> tuple[Floats, Floats]:
    """Maximise Σ weight · log(1 - c + c·ratio) over c for every pair; return c and the maxima.

    The function is concave. A negative c stands for less agreement than expected.

    Examples
    --------
    >>> ratio, pair = np.array([2.0, 2.0, 0.0]), np.zeros(3, dtype=int)
    >>> share, gain = most_likely_share(ratio, pair, np.ones(3), 1)
    >>> share.round(3)
    array([0.333])
    """
    slope = ratio - 1.0
    largest = np.ones(n_pairs)
    np.maximum.at(largest, pair, ratio)
    low = np.maximum(-0.9 / np.maximum(largest - 1.0, 0.9), -1.0)
    high = np.full(n_pairs, COPIED)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        rising = np.bincount(pair, weight * slope / (1 + middle[pair] * slope), n_pairs) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    share = (low + high) / 2
    gain = np.bincount(pair, weight * np.log1p(share[pair] * slope), n_pairs)
    return share, np.asarray(gain, dtype=np.float64)


def _with_own_skills(
    ref: Reference,
    pairs: PairMoments,
    found: Comparisons,
    detail: NDArray[np.intp],
    joint: Floats,
    single: Floats,
    copied: Floats,
) -> Floats:
    """Return the log-likelihood ratios of some pairs against skills fitted to the pair itself.

    The fit starts from the skills in the reference, and from skilled workers. If the reference
    knows nothing, it finds all tasks difficult; the skilled are assumed to find none so then.
    """
    n = len(detail)
    place = np.full(pairs.n_pairs, -1)
    place[detail] = np.arange(n)
    rows = np.flatnonzero(place[found.pair] >= 0)
    if len(rows) > MOST_IN_DETAIL:
        rows = rows[:: int(np.ceil(len(rows) / MOST_IN_DETAIL))]
    some = Comparisons(
        found.first[rows], found.second[rows], place[found.pair[rows]], found.weight[rows]
    )
    share = np.maximum(copied[detail], 0.0)[some.pair]
    mixed = (1 - share) * joint[rows] + share * np.where(_equal(ref, some), single[rows], 0.0)
    state = ref.without(some.first, some.second)
    K = ref.confusion.shape[1]
    skilled = SKILLED * np.eye(K) + (1 - SKILLED) / K
    first, second = (ref.confusion[end[detail]] for end in (pairs.first, pairs.second))
    either = np.broadcast_to(skilled, first.shape)
    easy = state
    if ref.competence < COMPETENT:
        easy = np.zeros((len(rows), K, len(ref.delta)))
        easy[:, :, 0] = state.reshape(easy.shape).sum(axis=2)
    independent = np.maximum(
        _explained_by_skill(ref, some, state, first, second),
        _explained_by_skill(ref, some, easy, either, either),
    )
    return np.asarray(np.bincount(some.pair, some.weight * np.log(mixed), n) - independent)


def _explained_by_skill(
    ref: Reference, some: Comparisons, state: Floats, first: Floats, second: Floats
) -> Floats:
    """Return the log-likelihood (n_pairs,) of independent workers, maximised over their skills.

    ``first`` and ``second`` are the confusion matrices (n_pairs, K, K) to start from.
    """
    label, delta = ref.annotations.label, ref.delta
    ends = [(first, label[some.first]), (second, label[some.second])]
    for _ in range(SKILL_STEPS):
        rates = [confusion[some.pair, :, given] for confusion, given in ends]  # (n, K)
        laws = [
            rate[:, :, None] * (1 - delta) + ref.label_share[given][:, None, None] * delta
            for rate, (_, given) in zip(rates, ends, strict=True)
        ]
        posterior = state.reshape(laws[0].shape) * laws[0] * laws[1]  # (n, K, D)
        likelihood = posterior.sum(axis=(1, 2))
        posterior *= (some.weight / likelihood)[:, None, None]
        ends = [
            (_rates(posterior / law @ (1 - delta) * rate, some.pair, given, len(first)), given)
            for law, rate, (_, given) in zip(laws, rates, ends, strict=True)
        ]
    total = np.bincount(some.pair, some.weight * np.log(likelihood), len(first))
    return np.asarray(total, dtype=np.float64)


def _rates(expected: Floats, pair: Longs, label: Longs, n_pairs: int) -> Floats:
    """Return confusion matrices (n_pairs, K, K) from the expected counts (n, K) of labels."""
    K = expected.shape[1]
    cell = pair * K + label
    columns = [np.bincount(cell, expected[:, k], n_pairs * K) for k in range(K)]
    counts = np.stack(columns, axis=1).reshape(n_pairs, K, K).transpose(0, 2, 1) + SMOOTHING
    return np.asarray(counts / counts.sum(axis=2, keepdims=True))
