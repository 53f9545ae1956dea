"""Transitivity of votes on sameness: exact counts, power, and no false alarms."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.same.audit import find_intransitive_votes
from wisecrowd.kinds.same.container import CrowdSame
from wisecrowd.simulate import same_votes


def test_triples_are_counted_exactly():
    rng = np.random.default_rng(0)
    left, right = np.triu_indices(9, 1)
    answer = rng.random(len(left)) < 0.5
    report = find_intransitive_votes(
        CrowdSame.from_arrays(None, None, left, right, answer.astype(int)), n_simulations=2
    )
    same = np.zeros((9, 9), dtype=int)
    same[left, right] = same[right, left] = answer
    sums = {one: same[one[0], one[1]] + same[one[1], one[2]] + same[one[0], one[2]]
            for one in combinations(range(9), 3)}  # fmt: skip
    assert report.n_triples == len(sums) == 84
    assert report.n_contradictions == sum(count == 2 for count in sums.values())
    assert report.n_testable == sum(count >= 2 for count in sums.values())
    wanted = [sum(a in one for one, count in sums.items() if count == 2) for a in range(9)]
    assert report.contradictions.tolist() == wanted


def test_degrees_of_similarity_are_reported():
    rng = np.random.default_rng(0)
    place = rng.random(30)
    left = rng.integers(0, 30, 900)
    right = (left + rng.integers(1, 30, 900)) % 30
    near = np.abs(place[left] - place[right]) < 0.25
    votes = CrowdSame.from_arrays(None, rng.integers(0, 6, 900), left, right, near.astype(int))
    found = [finding.id for finding in find_intransitive_votes(votes).findings()]
    assert found == ["pairs-beyond-clusters"]


@pytest.mark.parametrize("seed", range(3))
def test_clusters_with_errors_raise_no_alarm(seed):
    data = same_votes(30, 8, 700, 3, random_state=seed).data
    assert find_intransitive_votes(data).findings() == []


def test_without_triples_the_part_is_skipped():
    votes = CrowdSame.from_arrays(None, None, ["a", "b"], ["b", "c"], [1, 1])
    with pytest.raises(NotApplicable, match="no three items"):
        find_intransitive_votes(votes)
