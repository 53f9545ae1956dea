from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError


def test_rows_do_not_depend_on_the_class():
    confusion = simulate.Spammers(0.5).sample(50, 4, np.random.default_rng(0))
    np.testing.assert_array_equal(confusion, np.repeat(confusion[:, :1], 4, axis=1))
    np.testing.assert_allclose(confusion.sum(axis=2), 1.0)
    assert confusion.max(axis=2).std() > 0.1


def test_always_one_class():
    rng = np.random.default_rng(0)
    fixed = simulate.AlwaysOneClass(2).sample(3, 4, rng)
    np.testing.assert_array_equal(fixed, np.broadcast_to(np.eye(4)[2], (3, 4, 4)))
    drawn = simulate.AlwaysOneClass().sample(400, 4, rng)
    assert (np.sort(drawn, axis=2)[:, :, -1] == 1).all()
    favourite = drawn[:, 0].argmax(axis=1)
    assert (drawn.argmax(axis=2) == favourite[:, None]).all()
    assert (np.bincount(favourite, minlength=4) > 60).all()


def test_extreme_spammers_label_everything_beside_an_untouched_graph():
    people = 6 * simulate.OneCoinWorkers() + 2 * simulate.ExtremeSpammers() + simulate.Spammers()
    made = simulate.crowd(50, people, simulate.PerTask(2))
    labels = made.labels
    assert labels.labels_per_worker[6:8].tolist() == [50, 50]
    assert (labels.labels_per_task == 4).all()
    assert labels.labels_per_worker[8] < 50
    assert np.all(np.diff(labels.task.astype(np.int64) * 9 + labels.worker) > 0)


def test_a_crowd_of_extreme_spammers_alone():
    made = simulate.crowd(5, 2 * simulate.ExtremeSpammers(), simulate.PerTask(7))
    assert made.labels.n_annotations == 10


def test_bad_parameters():
    with pytest.raises(ParameterError, match=r"^concentration is "):
        simulate.Spammers(0)
    with pytest.raises(ParameterError, match=r"^code is "):
        simulate.AlwaysOneClass(-1)
    with pytest.raises(ParameterError, match="`code` is 2, but there are 2 classes"):
        simulate.AlwaysOneClass(2).sample(1, 2, np.random.default_rng(0))
