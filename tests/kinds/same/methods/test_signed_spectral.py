"""SignedSpectral: right votes on all pairs are separated, and renaming items changes nothing."""

from __future__ import annotations

import itertools

import numpy as np

from wisecrowd.aggregation import SignedSpectral
from wisecrowd.kinds.same.container import CrowdSame

CLUSTER = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]
PAIRS = list(itertools.combinations(range(12), 2))


def votes(names):
    left, right = ([names[pair[side]] for pair in PAIRS] for side in (0, 1))
    said = ["same" if CLUSTER[a] == CLUSTER[b] else "different" for a, b in PAIRS]
    return CrowdSame.from_arrays(None, ["w"] * len(PAIRS), left, right, said)


def together(model, names):
    found = dict(zip(model.items_.tolist(), model.cluster_.tolist(), strict=True))
    return np.array([[found[a] == found[b] for a in names] for b in names])


def test_right_votes_give_the_clusters():
    truth = np.equal.outer(CLUSTER, CLUSTER)
    for names in ([f"i{a:02}" for a in range(12)], [f"i{11 - a:02}" for a in range(12)]):
        model = SignedSpectral(n_clusters=3).fit(votes(names))
        np.testing.assert_array_equal(together(model, names), truth)
