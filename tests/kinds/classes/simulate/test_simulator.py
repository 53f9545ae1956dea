"""The whole simulator against its own model and against numbers measured elsewhere."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.stats

from wisecrowd import metrics, simulate
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels


def votes(labels: CrowdLabels) -> np.ndarray:
    counts = np.zeros((labels.n_tasks, labels.n_classes))
    np.add.at(counts, (labels.task, labels.label), 1)
    return counts


def test_labels_follow_every_workers_confusion():
    people = 3 * simulate.DirichletWorkers(3, 1) + 2 * simulate.PairwiseFlippers(0.6)
    made = simulate.crowd(
        9000, people, simulate.Bernoulli(0.7), class_prior=[0.5, 0.3, 0.15, 0.05], random_state=3
    )
    labels = made.labels
    rows = labels.worker.astype(np.int64) * 4 + made.truth_codes[labels.task]
    counts = np.bincount(rows * 4 + labels.label, minlength=5 * 16).reshape(5, 4, 4)
    for j in range(5):
        for k in range(4):
            possible = made.confusion[j, k] > 0
            assert counts[j, k][~possible].sum() == 0
            expected = made.confusion[j, k][possible] * counts[j, k].sum()
            assert scipy.stats.chisquare(counts[j, k][possible], expected).pvalue > 1e-4


@pytest.mark.parametrize(
    ("a", "b", "n_spammers", "expected"),
    [(0.2, 0.1, 0, 0.733), (1.0, 0.5, 0, 0.736), (2.0, 1.0, 0, 0.741), (2.0, 1.0, 1, 0.684)],
)
def test_majority_vote_on_regular_graphs_is_as_measured_elsewhere(a, b, n_spammers, expected):
    """1000 tasks, 750 workers, (3, 4)-regular: eight seeds each, standard deviation .01 to .02."""
    people = 750 * simulate.OneCoinWorkers(a, b)
    if n_spammers:
        people = people + n_spammers * simulate.ExtremeSpammers()
    accuracy = []
    for seed in range(8):
        made = simulate.crowd(1000, people, simulate.Regular(3, 4), random_state=seed)
        accuracy.append(metrics.fractional_accuracy(made.truth_codes, votes(made.labels)))
    assert np.mean(accuracy) == pytest.approx(expected, abs=0.015)


def test_every_task_and_worker_is_kept_with_or_without_labels():
    made = simulate.crowd(300, 40 * simulate.OneCoinWorkers(), simulate.Bernoulli(0.005))
    labels = made.labels
    assert (labels.n_tasks, labels.n_workers, labels.n_classes) == (300, 40, 2)
    assert (labels.labels_per_task == 0).any()
    assert labels.tasks.tolist() == list(range(300))
    assert labels.workers.tolist() == list(range(40))


def test_what_the_gate_would_build_from_the_same_rows():
    made = simulate.crowd(50, 9 * simulate.OneCoinWorkers(), simulate.PerTask(4), n_classes=3)
    table = made.labels.to_dict()
    built = CrowdLabels.from_arrays(
        table["task"], table["worker"], table["label"], classes=[0, 1, 2], workers=np.arange(9)
    )
    for name in ("task", "worker", "label", "tasks", "workers", "classes"):
        np.testing.assert_array_equal(getattr(made.labels, name), getattr(built, name))


def test_same_seed_same_crowd_and_other_seed_another():
    def draw(seed):
        people = 9 * simulate.OneCoinWorkers() + 3 * simulate.Copiers(0.5)
        return simulate.crowd(
            80, people, simulate.LongTail(4), difficulty="beta:1,3", random_state=seed
        )

    one, two, other = draw(5), draw(5), draw(6)
    np.testing.assert_array_equal(one.labels.label, two.labels.label)
    np.testing.assert_array_equal(one.labels.worker, two.labels.worker)
    np.testing.assert_array_equal(one.confusion, two.confusion)
    np.testing.assert_array_equal(one.difficulty, two.difficulty)
    assert not np.array_equal(one.labels.label, other.labels.label)
    assert not np.array_equal(draw(None).confusion, draw(None).confusion)


def test_one_seed_gives_one_truth_and_one_graph_to_different_workers():
    one = simulate.crowd(200, 20 * simulate.OneCoinWorkers(), simulate.PerTask(3))
    two = simulate.crowd(200, 20 * simulate.HammerSpammers(), simulate.PerTask(3))
    np.testing.assert_array_equal(one.truth, two.truth)
    np.testing.assert_array_equal(one.labels.worker, two.labels.worker)


def test_a_generator_is_advanced():
    rng = np.random.default_rng(0)
    people = 5 * simulate.OneCoinWorkers()
    first, second = (simulate.crowd(50, people, random_state=rng) for _ in range(2))
    assert not np.array_equal(first.truth, second.truth)


def test_the_global_random_state_is_left_alone():
    state = np.random.get_state()  # noqa: NPY002
    people = 5 * simulate.DirichletWorkers() + 2 * simulate.Copiers() + simulate.ExtremeSpammers()
    simulate.crowd(60, people, simulate.LongTail(3), difficulty=simulate.GLADDifficulty())
    after = np.random.get_state()  # noqa: NPY002
    assert state[0] == after[0]
    np.testing.assert_array_equal(state[1], after[1])


@pytest.mark.parametrize("n_classes", [1, 2, 5])
@pytest.mark.parametrize("assignment", [None, "dense", "per-task:1", "regular:1,1", "bernoulli:1"])
def test_one_task_one_worker(n_classes, assignment):
    made = simulate.crowd(1, 1 * simulate.OneCoinWorkers(), assignment, n_classes=n_classes)
    assert made.labels.n_annotations == 1
    assert made.confusion.shape == (1, n_classes, n_classes)
    assert 0 <= made.labels.label[0] < n_classes


@pytest.mark.parametrize("name", sorted(set(simulate.POPULATIONS) - {"copiers"}))
def test_every_named_population_gives_valid_matrices_and_labels(name):
    made = simulate.crowd(30, f"6*{name}", "per-task:3")
    assert (made.confusion >= 0).all()
    np.testing.assert_allclose(made.confusion.sum(axis=2), 1.0)
    assert set(made.kinds) == {name}
    assert made.labels.label.max() < 2


def test_default_graph_is_five_workers_or_everybody():
    assert simulate.crowd(10, 9 * simulate.Spammers()).labels.n_annotations == 50
    assert simulate.crowd(10, 3 * simulate.Spammers()).labels.n_annotations == 30


def test_worker_accuracy_weighs_the_classes():
    confusion = np.array([[0.9, 0.1], [0.6, 0.4]])
    made = simulate.crowd(10, 1 * simulate.FixedConfusion(confusion), class_prior=[0.8, 0.2])
    np.testing.assert_allclose(made.worker_accuracy, 0.8 * 0.9 + 0.2 * 0.4)


def test_the_result_survives_pickling():
    made = simulate.crowd(20, 4 * simulate.OneCoinWorkers())
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(again.labels.label, made.labels.label)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workers": simulate.OneCoinWorkers()}, r"Give `n_workers`, or a crowd such as 30 \* One"),
        ({"workers": 3 * simulate.Spammers(), "n_workers": 4}, "4, but `workers` has 3"),
        ({"workers": simulate.Spammers(), "n_workers": 0}, "^n_workers is "),
        ({"workers": 5}, "`workers` must be"),
        ({"workers": 3 * simulate.Spammers(), "assignment": 5}, "`assignment` must be"),
        ({"workers": 3 * simulate.Spammers(), "random_state": -1}, "^random_state is "),
        ({"workers": 3 * simulate.Spammers(), "random_state": "x"}, "^random_state is "),
        ({"workers": 100_000 * simulate.Spammers(), "n_classes": 1000}, "745 GiB"),
        (
            {"workers": 1 * simulate.Spammers(), "assignment": simulate.Bernoulli(1e-9)},
            "drew no annotation",
        ),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ParameterError, match=message):
        simulate.crowd(10, **arguments)


PEOPLE = 4 * simulate.OneCoinWorkers()


def test_the_class_prior_is_respected():
    made = simulate.crowd(20_000, PEOPLE, class_prior=[0.7, 0.25, 0.05])
    counts = np.bincount(made.truth_codes, minlength=3)
    assert scipy.stats.chisquare(counts, 20_000 * np.array([0.7, 0.25, 0.05])).pvalue > 0.001
    even = simulate.crowd(20_000, PEOPLE, n_classes=4)
    assert scipy.stats.chisquare(np.bincount(even.truth_codes)).pvalue > 0.001
    np.testing.assert_allclose(even.class_prior, 0.25)


def test_a_class_of_probability_zero_stays_declared():
    made = simulate.crowd(200, PEOPLE, class_prior=[1.0, 0.0, 0.0])
    assert made.labels.classes.tolist() == [0, 1, 2]
    assert (made.truth == 0).all()


def test_given_truth_keeps_its_ids():
    truth = np.array(["dog", "cat", "cat", "cow"])
    made = simulate.crowd(None, PEOPLE, truth=truth)
    np.testing.assert_array_equal(made.truth, truth)
    assert made.labels.classes.tolist() == ["cat", "cow", "dog"]
    assert made.truth_codes.tolist() == [2, 0, 0, 1]
    np.testing.assert_allclose(made.class_prior, [0.5, 0.25, 0.25])


def test_declared_classes_keep_their_order_and_the_unused_ones():
    made = simulate.crowd(None, PEOPLE, truth=["b", "a"], classes=["c", "b", "a"])
    assert made.labels.classes.tolist() == ["c", "b", "a"]
    assert made.truth_codes.tolist() == [1, 2]
    drawn = simulate.crowd(50, PEOPLE, classes=["no", "yes"])
    assert set(drawn.truth) == {"no", "yes"}
    numbers = simulate.crowd(None, PEOPLE, truth=[0, 2], n_classes=4)
    assert numbers.labels.classes.tolist() == [0, 1, 2, 3]


def test_the_users_arrays_stay_writable():
    truth, classes = np.array([0, 1]), np.array([0, 1, 2])
    simulate.crowd(None, PEOPLE, truth=truth, classes=classes)
    truth[0] = classes[0] = 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_tasks": None}, "^n_tasks is None; give an integer of at least 1"),
        ({"n_tasks": 0}, "^n_tasks is "),
        ({"n_tasks": 5, "n_classes": 0}, "^n_classes is "),
        ({"n_tasks": 5, "class_prior": [0.5, 0.6]}, "sum to 1, but sums to 1.1"),
        ({"n_tasks": 5, "class_prior": [1.5, -0.5]}, "non-negative"),
        ({"n_tasks": 5, "class_prior": [np.nan, 1.0]}, "non-negative"),
        ({"n_tasks": 5, "n_classes": 3, "class_prior": [0.5, 0.5]}, "`class_prior` says 2"),
        ({"n_tasks": 5, "classes": ["a", "a"]}, "distinct"),
        ({"n_tasks": None, "truth": [0, 1], "class_prior": [0.5, 0.5]}, "not drawn"),
        ({"n_tasks": 3, "truth": [0, 1]}, "`n_tasks` is 3, but `truth` has 2"),
        ({"n_tasks": None, "truth": ["a", "b"], "n_classes": 3}, "there are 2 classes"),
    ],
)
def test_bad_arguments_of_truth(arguments, message):
    with pytest.raises(ParameterError, match=message):
        simulate.crowd(workers=PEOPLE, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"truth": []}, "shape"),
        ({"truth": [[0, 1]]}, "shape"),
        ({"truth": [0.0, np.nan]}, "missing for task 1"),
        ({"truth": [0, 3], "n_classes": 2}, "task 1 is .*3.*, which is not a class"),
        ({"truth": ["a", "d"], "classes": ["a", "b"]}, "task 1 is .*'d'"),
        ({"truth": np.array([1, "a"], dtype=object)}, "cannot be sorted"),
        (
            {"truth": np.array(["a"], dtype=object), "classes": [1, 2]},
            "different types|not a class",
        ),
    ],
)
def test_bad_truth(arguments, message):
    with pytest.raises(DataError, match=message):
        simulate.crowd(None, PEOPLE, **arguments)
