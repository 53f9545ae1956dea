"""Published worked examples, and coincidence matrices counted in plain loops, as oracles."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from wisecrowd import metrics
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.metrics.agreement import LEVELS, TaskCounts
from wisecrowd.metrics.resampling import Bootstrap

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
    _, counts = np.unique(np.concatenate(tasks), return_counts=True)
    chance = np.sum((counts / counts.sum()) ** 2)
    expected = (np.mean(pairs) - chance) / (1 - chance)
    assert metrics.fleiss_kappa(task, label) == pytest.approx(expected, abs=1e-12)


def test_agreement_on_each_class_of_fleiss_example():
    task, label = long(SUBJECTS, np.arange(5))
    agreement, kappa = TaskCounts.from_codes(task, label, 10, 5).by_class().value
    for c in range(5):
        n_c = SUBJECTS[:, c]
        conditional = np.sum(n_c * (n_c - 1)) / (np.sum(n_c) * 13)  # Fleiss (1971), formula 10
        share = n_c.sum() / 140
        assert agreement[c] == pytest.approx(conditional)
        assert kappa[c] == pytest.approx((conditional - share) / (1 - share))


def test_names_of_classes_do_not_matter_to_the_nominal_level(ragged):
    task, label = ragged
    names = np.array([f"class {v}" for v in label])
    assert metrics.krippendorff_alpha(task, names) == metrics.krippendorff_alpha(task, label)


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
    task, label = long(counts, codes)

    def of(table, bootstrap):
        if measure == "fleiss":
            return table.fleiss(bootstrap)
        if measure == "class":
            return table.by_class(bootstrap)
        return table.alpha(measure, np.arange(3.0), bootstrap)

    found = of(TaskCounts.from_codes(task, label, 120, 3), Bootstrap(2000))
    drawn = []
    for _ in range(300):
        table = TaskCounts.from_codes(*long(counts[rng.integers(120, size=120)], codes), 120, 3)
        drawn.append(of(table, Bootstrap(0)).value)
    # A standard deviation of 300 replicates is known to 4 percent.
    width = 2 * 1.96 * np.std(drawn, axis=0)
    np.testing.assert_allclose(found.high - found.low, width, rtol=0.18)
    np.testing.assert_allclose((found.low + found.high) / 2, found.value, atol=0.2 * width.max())


def test_bad_input_is_named():
    with pytest.raises(ParameterError, match="level"):
        metrics.krippendorff_alpha([1, 1], [1, 2], level="ratio")
    with pytest.raises(DataError, match="2 values but `label` has 1"):
        metrics.krippendorff_alpha([1, 1], [1])
    with pytest.raises(DataError, match="needs labels that are numbers"):
        metrics.krippendorff_alpha([1, 1], ["a", "b"], level="interval")
    with pytest.raises(DataError, match="missing value at position 1"):
        metrics.fleiss_kappa([1, 1], ["a", None])
