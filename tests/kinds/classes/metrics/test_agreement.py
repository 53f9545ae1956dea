"""Published worked examples, and coincidence matrices counted in plain loops, as oracles."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from wisecrowd import metrics, simulate
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.statistics import Bootstrap
from wisecrowd.kinds.classes.metrics.agreement import (
    LEVELS,
    worker_agreement,
)
from wisecrowd.kinds.classes.metrics.coefficients import (
    UnitLabels,
    alpha,
    chance_of,
    class_coefficients,
    class_values,
    fleiss,
    nominal,
    ordinal_alpha,
    quadratic,
)
from wisecrowd.kinds.classes.metrics.worker_kappas import pair_kappas
from wisecrowd.truth.agreement_intervals import task_interval

# Krippendorff (2011), section D: four observers, twelve units, 0 for "did not say".
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
)
# Fleiss' worked example as commonly printed: 10 subjects, 14 labels each, 5 categories.
SUBJECTS = np.array(
    [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]
)  # fmt: skip


def long(counts: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    task = np.repeat(np.arange(len(counts)), counts.sum(axis=1))
    return task, np.concatenate([np.repeat(values, row) for row in counts])


def alpha_in_loops(task: np.ndarray, label: np.ndarray, level: str) -> float:
    """Krippendorff's four steps, one pair of labels at a time."""
    values = sorted(set(label.tolist()))
    pairs = dict.fromkeys(itertools.product(values, values), 0.0)
    for i in set(task.tolist()):
        said = label[task == i].tolist()
        for a, b in itertools.permutations(range(len(said)), 2):
            pairs[said[a], said[b]] += 1 / (len(said) - 1)
    n_c = {c: sum(pairs[c, k] for k in values) for c in values}

    def difference(c, k):
        if level == "nominal":
            return float(c != k)
        if level == "interval":
            return float(c - k)
        low, high = min(c, k), max(c, k)
        return sum(n_c[g] for g in values if low <= g <= high) - (n_c[c] + n_c[k]) / 2

    n = sum(n_c.values())
    observed = sum(pairs[c, k] * difference(c, k) ** 2 for c, k in pairs)
    expected = sum(n_c[c] * n_c[k] * difference(c, k) ** 2 for c, k in pairs)
    return 1 - (n - 1) * observed / expected


@pytest.fixture(params=range(4))
def ragged(request) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of labels per task from one to many; the last case has too many classes to pack."""
    rng = np.random.default_rng(request.param)
    n_classes = (2, 3, 5, 40)[request.param]
    counts = rng.poisson(6 / n_classes, size=(15, n_classes))
    counts[:, 0] += counts.sum(axis=1) == 0
    return long(counts, np.sort(rng.choice(90, n_classes, replace=False)))


@pytest.mark.parametrize(
    ("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_of_krippendorffs_example(level, published):
    observer, unit = np.nonzero(OBSERVERS)
    alpha = metrics.krippendorff_alpha(unit, OBSERVERS[observer, unit], level=level)
    assert alpha == pytest.approx(published, abs=5e-4)


def test_kappa_of_fleiss_example():
    assert metrics.fleiss_kappa(*long(SUBJECTS, np.arange(5))) == pytest.approx(0.210, abs=5e-4)


@pytest.mark.parametrize("level", LEVELS)
def test_alpha_agrees_with_loops(ragged, level):
    alpha = metrics.krippendorff_alpha(*ragged, level=level)
    assert alpha == pytest.approx(alpha_in_loops(*ragged, level), abs=1e-12)


def test_fleiss_with_different_numbers_of_labels(ragged):
    task, label = ragged
    tasks = [label[task == i] for i in np.unique(task) if np.sum(task == i) >= 2]
    pairs = [np.mean([a == b for a, b in itertools.permutations(x.tolist(), 2)]) for x in tasks]
    shares = [[np.mean(label[task == i] == c) for c in np.unique(label)] for i in np.unique(task)]
    chance = np.sum(np.mean(shares, axis=0) ** 2)
    expected = (np.mean(pairs) - chance) / (1 - chance)
    assert metrics.fleiss_kappa(task, label) == pytest.approx(expected, abs=1e-12)


def test_agreement_on_each_class_of_fleiss_example():
    task, label = long(SUBJECTS, np.arange(5))
    labels = UnitLabels(task, label, 10, 5)
    agreement, kappa = class_values(labels)
    for c in range(5):
        assert [one.value for one in class_coefficients(labels, c)] == pytest.approx(
            [agreement[c], kappa[c]]
        )
        n_c = SUBJECTS[:, c]
        conditional = np.sum(n_c * (n_c - 1)) / (np.sum(n_c) * 13)  # Fleiss (1971), formula 10
        share = n_c.sum() / 140
        assert agreement[c] == pytest.approx(conditional)
        assert kappa[c] == pytest.approx((conditional - share) / (1 - share))


def test_names_of_classes_do_not_matter_to_the_nominal_level(ragged):
    task, label = ragged
    names = np.array([f"class {v}" for v in label])
    alpha_of_numbers = metrics.krippendorff_alpha(task, label)
    assert metrics.krippendorff_alpha(task, names) == pytest.approx(alpha_of_numbers, abs=1e-12)


def test_a_shift_and_scale_of_the_numbers_does_not_matter_to_the_interval_level(ragged):
    task, label = ragged
    alpha = metrics.krippendorff_alpha(task, label, level="interval")
    moved = metrics.krippendorff_alpha(task, 1e6 + 0.5 * label, level="interval")
    assert moved == pytest.approx(alpha, abs=1e-8)


@pytest.mark.parametrize("level", LEVELS)
def test_undefined_without_variation_or_pairs(level):
    assert np.isnan(metrics.krippendorff_alpha([1, 1, 2, 2], [3, 3, 3, 3], level=level))
    assert np.isnan(metrics.krippendorff_alpha([1, 2, 3], [3, 4, 3], level=level))
    assert np.isnan(metrics.fleiss_kappa([1, 1, 2, 2], [3, 3, 3, 3]))


@pytest.mark.parametrize("measure", [*LEVELS, "fleiss", "class"])
def test_intervals_are_those_of_resampled_tasks(measure):
    rng = np.random.default_rng(5)
    counts = rng.multinomial(4, [0.5, 0.3, 0.2], size=120)
    codes = np.arange(3)
    of = {
        "nominal": lambda labels: alpha(labels, nominal(3)),
        "ordinal": ordinal_alpha,
        "interval": lambda labels: alpha(labels, quadratic(np.arange(3.0))),
        "fleiss": lambda labels: fleiss(chance_of(labels, nominal(3))),
        "class": lambda labels: class_coefficients(labels, 1)[1],
    }[measure]
    task, label = long(counts, codes)
    found = task_interval(of(UnitLabels(task, label, 120, 3)), task)
    drawn = [
        of(UnitLabels(*long(counts[rng.integers(120, size=120)], codes), 120, 3)).value
        for _ in range(300)
    ]
    # A standard deviation of 300 replicates is known to 4 percent.
    width = 2 * 1.98 * np.std(drawn)
    assert found.high - found.low == pytest.approx(width, rel=0.14)


def test_bad_input_is_named():
    with pytest.raises(ParameterError, match="level"):
        metrics.krippendorff_alpha([1, 1], [1, 2], level="ratio")
    with pytest.raises(DataError, match="2 values but `label` has 1"):
        metrics.krippendorff_alpha([1, 1], [1])
    with pytest.raises(DataError, match="needs labels that are numbers"):
        metrics.krippendorff_alpha([1, 1], ["a", "b"], level="interval")
    with pytest.raises(DataError, match="missing value at position 1"):
        metrics.fleiss_kappa([1, 1], ["a", None])


@pytest.fixture(scope="module")
def labels():
    workers = 6 * simulate.OneCoinWorkers(8, 2) + 2 * simulate.Spammers()
    return simulate.crowd(150, workers, simulate.Bernoulli(0.5), n_classes=3).labels


def arrays(labels):
    return labels.indptr, labels.task, labels.worker, labels.label, labels.n_classes


@pytest.mark.parametrize("seed", range(5))
def test_cohen_agrees_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 4, 30)
    second = np.where(rng.random(30) < 0.6, first, rng.integers(2, 6, 30))
    expected = cohen_kappa_score(first, second)
    assert metrics.cohen_kappa(first, second) == pytest.approx(expected, abs=1e-12)
    assert metrics.cohen_kappa(second, first) == pytest.approx(expected, abs=1e-12)


def test_cohen_of_one_class_is_undefined():
    assert np.isnan(metrics.cohen_kappa(["a", "a"], ["a", "a"]))


def test_pairs_agree_with_scikit_learn_on_common_tasks(labels):
    found = pair_kappas(*arrays(labels), min_common=30)
    matrix = np.full((labels.n_tasks, labels.n_workers), -1)
    matrix[labels.task, labels.worker] = labels.label
    expected = {}
    for j in range(8):
        for k in range(j + 1, 8):
            both = (matrix[:, j] >= 0) & (matrix[:, k] >= 0)
            if both.sum() >= 30:
                expected[j, k] = cohen_kappa_score(matrix[both, j], matrix[both, k])
    assert 0 < len(expected) < 28  # the threshold cuts some pairs off, not all
    pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    assert pairs == list(expected)
    np.testing.assert_allclose(found.kappa, list(expected.values()), atol=1e-12)
    assert found.mean.value == pytest.approx(np.mean(list(expected.values())))


def test_errors_of_pairs_are_those_of_resampled_tasks(labels):
    found = pair_kappas(*arrays(labels), min_common=5)
    rng = np.random.default_rng(1)
    means, first_pair = [], []
    for _ in range(400):
        chosen = np.sort(rng.integers(labels.n_tasks, size=labels.n_tasks))
        rows = np.concatenate([np.arange(*labels.indptr[i : i + 2]) for i in chosen])
        indptr = np.concatenate([[0], np.cumsum(labels.labels_per_task[chosen])])
        task = np.repeat(np.arange(len(chosen)), labels.labels_per_task[chosen])
        drawn = pair_kappas(indptr, task, labels.worker[rows], labels.label[rows], 3)
        means.append(drawn.mean.value)
        first_pair.append(drawn.kappa[0])
    width = found.mean.high - found.mean.low
    assert width == pytest.approx(2 * 1.96 * np.std(means), rel=0.15)
    assert found.kappa_error[0] == pytest.approx(np.std(first_pair), rel=0.15)


def test_error_of_one_pair_is_the_published_formula():
    """Fleiss, Cohen and Everitt (1969), formula 13, on a skewed table."""
    table = np.array([[44, 5, 1], [7, 20, 3], [9, 5, 6]])
    first, second = np.repeat(np.indices((3, 3)).reshape(2, -1), table.ravel(), axis=1)
    n = table.sum()
    found = pair_kappas(
        np.arange(0, 2 * n + 1, 2), np.repeat(np.arange(n), 2), np.tile([0, 1], n),
        np.stack([first, second], axis=1).ravel(), 3,
    )  # fmt: skip
    p = table / n
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    agree, chance = np.trace(p), rows @ columns
    diagonal = np.diag(p) @ ((1 - chance) - (rows + columns) * (1 - agree)) ** 2
    weights = (columns[:, None] + rows[None, :]) ** 2
    apart = (1 - agree) ** 2 * (p * weights * (1 - np.eye(3))).sum()
    last = (agree * chance - 2 * chance + agree) ** 2
    variance = (diagonal + apart - last) / (n * (1 - chance) ** 4)
    assert found.kappa_error[0] == pytest.approx(np.sqrt(variance))
    reach = found.mean.high - found.mean.value
    assert reach == pytest.approx(1.959964 * np.sqrt(variance), rel=1e-5)


def test_a_worker_does_not_agree_with_itself():
    # Two labels by worker 0 and one by worker 1 on a task: one pair only, seen twice.
    found = pair_kappas(
        np.array([0, 3]), np.zeros(3, int), np.array([0, 0, 1]), np.array([0, 1, 1]), 2,
        min_common=1,
    )  # fmt: skip
    assert found.common.tolist() == [2]
    assert found.agreement.tolist() == [0.5]


def test_agreement_of_workers_agrees_with_loops(labels):
    indptr, task, worker, label, n_classes = arrays(labels)
    compared, found = worker_agreement(indptr, worker, label, labels.n_workers, n_classes)
    shared = labels.labels_per_task[task] >= 2
    share = np.bincount(label[shared]) / shared.sum()
    for j in range(labels.n_workers):
        agreeing, chance = [], []
        for e in np.flatnonzero(shared & (worker == j)):
            others = (task == task[e]) & (np.arange(len(task)) != e)
            agreeing.append(np.mean(label[others] == label[e]))
            chance.append(share[label[e]])
        expected = np.mean(chance)
        assert compared[j] == len(agreeing)
        assert found.value[0, j] == pytest.approx(np.mean(agreeing))
        kappa = (np.mean(agreeing) - expected) / (1 - expected)
        assert found.value[1, j] == pytest.approx(kappa)


def test_intervals_of_workers_have_the_width_of_a_mean(labels):
    indptr, task, worker, label, n_classes = arrays(labels)
    _, found = worker_agreement(indptr, worker, label, 8, n_classes, Bootstrap(2000))
    shared = labels.labels_per_task[task] >= 2
    for j in range(8):
        rows = np.flatnonzero(shared & (worker == j))
        values = [
            np.mean(label[(task == task[e]) & (worker != j)] == label[e]) for e in rows.tolist()
        ]
        error = np.std(values) / np.sqrt(len(values))
        assert found.high[0, j] - found.low[0, j] == pytest.approx(2 * 1.96 * error, rel=0.12)


def test_workers_alone_on_their_tasks_have_no_agreement():
    compared, found = worker_agreement(
        np.array([0, 2, 3]), np.array([0, 1, 2]), np.array([0, 0, 1]), 3, 2, Bootstrap(10)
    )
    assert compared.tolist() == [1, 1, 0]
    assert np.isnan(found.value[:, 2]).all()
    assert np.isnan(found.low[:, 2]).all()
    assert found.value[0, :2].tolist() == [1.0, 1.0]
