"""Votes with times, for the tests of online methods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wisecrowd.kinds.pairs.container import CrowdPairs


def one_vote(outcome="left"):
    return CrowdPairs.from_arrays(None, None, ["x"], ["y"], [outcome], timestamp=[1.0])


def timed(pairs, seed=0):
    times = np.random.default_rng(seed).permutation(pairs.n_annotations).astype(float)
    return replace(pairs, columns={"timestamp": times})
