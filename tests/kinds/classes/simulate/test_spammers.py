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


def test_whole_workers_are_hammers_or_spammers():
    confusion = simulate.HammerSpammers(0.3).sample(5000, 3, np.random.default_rng(0))
    hammer = (confusion == np.eye(3)).all(axis=(1, 2))
    spammer = np.isclose(confusion, 1 / 3).all(axis=(1, 2))
    assert (hammer ^ spammer).all()
    assert hammer.mean() == pytest.approx(0.3, abs=0.02)


def test_classes_are_known_independently():
    confusion = simulate.ClassWiseHammerSpammers(0.4).sample(5000, 3, np.random.default_rng(0))
    known = (confusion == np.eye(3)).all(axis=2)
    guessed = np.isclose(confusion, 1 / 3).all(axis=2)
    assert (known ^ guessed).all()
    np.testing.assert_allclose(known.mean(axis=0), 0.4, atol=0.025)
    assert known.all(axis=1).mean() == pytest.approx(0.4**3, abs=0.015)


@pytest.mark.parametrize("cls", [simulate.HammerSpammers, simulate.ClassWiseHammerSpammers])
def test_ends_of_the_range_and_beyond(cls):
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(cls(1).sample(2, 2, rng), [np.eye(2)] * 2)
    np.testing.assert_array_equal(cls(0).sample(1, 2, rng), [[[0.5, 0.5]] * 2])
    with pytest.raises(ParameterError, match=r"^gamma is .*; give .* between 0\.0 and 1\.0"):
        cls(1.5)


@pytest.mark.parametrize(("n_known", "n_classes", "n_workers"), [(1, 5, 10), (2, 5, 10), (5, 5, 3)])
def test_every_worker_knows_so_many_classes_and_all_classes_equally_often(
    n_known, n_classes, n_workers
):
    population = simulate.ClassExperts(n_known, p=0.9, q=0.3)
    confusion = population.sample(n_workers, n_classes, np.random.default_rng(0))
    known = np.isclose(np.diagonal(confusion, axis1=1, axis2=2), 0.9)
    assert (known.sum(axis=1) == n_known).all()
    assert np.ptp(known.sum(axis=0)) == 0
    np.testing.assert_allclose(np.diagonal(confusion, axis1=1, axis2=2)[~known], 0.3)
    np.testing.assert_allclose(confusion.sum(axis=2), 1.0)


def test_a_few_workers_share_out_all_classes():
    confusion = simulate.ClassExperts(2, p=1.0).sample(3, 6, np.random.default_rng(0))
    known = np.diagonal(confusion, axis1=1, axis2=2) == 1.0
    assert (known.sum(axis=0) == 1).all()


def test_unknown_classes_are_guessed():
    confusion = simulate.ClassExperts(1).sample(4, 4, np.random.default_rng(0))
    guessed = np.diagonal(confusion, axis1=1, axis2=2) != 0.95
    np.testing.assert_allclose(confusion[guessed], 0.25)


def test_edges_and_errors():
    np.testing.assert_array_equal(
        simulate.ClassExperts().sample(2, 1, np.random.default_rng(0)), np.ones((2, 1, 1))
    )
    with pytest.raises(ParameterError, match="`n_known` is 3, but there are 2 classes"):
        simulate.ClassExperts(3).sample(1, 2, np.random.default_rng(0))
    with pytest.raises(ParameterError, match=r"^n_known is "):
        simulate.ClassExperts(0)
    with pytest.raises(ParameterError, match=r"^q is "):
        simulate.ClassExperts(q=2)
