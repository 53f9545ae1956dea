"""Simulated masks: habits show in the masks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.masks.metrics import known_masks


def test_without_mistakes_everybody_draws_the_truth():
    made = simulate.masks(4, 3, simulate.Dense(), offset=0, shift=0, wobble=0, miss=0)
    truth = known_masks(dict(enumerate(made.truth.tolist())), made.data)
    for e in range(made.data.n_annotations):
        own = made.data.mask[made.data.pointer[e] : made.data.pointer[e + 1]]
        assert own.tolist() == truth[int(made.data.task[e])].tolist()


def test_offsets_make_masks_larger_and_misses_empty():
    made = simulate.masks(30, 6, simulate.Dense(), shift=0, wobble=0, miss=0, random_state=1)
    area = np.bincount(made.data.worker, made.data.area)
    assert np.array_equal(np.argsort(area), np.argsort(made.habits[:, 0]))
    assert (simulate.masks(3, 2, miss=1).data.area == 0).all()


def test_sizes_and_seeds():
    made = simulate.masks(3, 4, height=20, width=30, random_state=2)
    assert json.loads(made.truth[0])["size"] == [20, 30]
    again = simulate.masks(3, 4, height=20, width=30, random_state=2)
    assert np.array_equal(made.data.mask, again.data.mask)
    with pytest.raises(ParameterError, match="miss is 2"):
        simulate.masks(3, 4, miss=2)
