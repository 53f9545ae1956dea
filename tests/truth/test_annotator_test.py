"""The alternative annotator test against plain loops, published figures and known distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import false_discovery_control, ttest_1samp
from tests.truth.judge_crowds import (
    as_classes,
    as_numbers,
    by_worker,
    judged_crowd,
    nearness,
    plain_test,
    read_rows,
)

import wisecrowd as wc
from wisecrowd.truth.annotator_test import below, benjamini_yekutieli, clustered_means

# Omega and rho of the published function, Calderon et al. (2025).
PUBLISHED = {
    ("judges_framing", 0.15): {
        "gemini_flash": (1.0, 0.8336), "gemini_pro": (1.0, 0.9062), "gpt-4o": (1.0, 0.9179),
        "llama-31": (0.5, 0.8015), "gpt-4o-mini": (1.0, 0.8724), "mistral-v03": (0.25, 0.7991),
    },
    ("judges_cebab_aspects", 0.1): {
        "gemini_flash": (0.7, 0.9135), "gemini_pro": (0.9, 0.9356), "gpt-4o": (0.9, 0.9277),
        "llama-31": (0.6, 0.8911), "gpt-4o-mini": (0.5, 0.8962), "mistral-v03": (0.1, 0.8110),
    },
    ("judges_mtbench", 0.2): {
        "gemini_flash": (0.0, 0.7189), "gemini_pro": (0.0, 0.7645), "gpt-4o": (0.0, 0.7728),
        "llama-31": (0.0, 0.6872), "gpt-4o-mini": (0.0, 0.7355), "mistral-v03": (0.0, 0.6832),
    },
}  # fmt: skip


def assert_like_loops(found, people, models, epsilon, **score):
    columns = found.columns
    persons = found.tables["judge_people"]
    for n, judge in enumerate(columns["judge"].tolist()):
        omega, rho, ours, theirs, p = plain_test(models[judge], people, epsilon, **score)
        expected = [omega, rho, ours, theirs]
        measured = [columns[name][n] for name in ("omega", "rho", "score", "ceiling")]
        np.testing.assert_allclose(measured, expected, rtol=0, atol=1e-12)
        own = persons["judge"] == judge
        by_person = dict(zip(persons["person"][own], persons["p"][own], strict=True))
        assert by_person.keys() == p.keys()
        for person, value in p.items():
            assert by_person[person] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("seed", [0, 1])
def test_classes_equal_plain_loops(seed):
    rows, _ = judged_crowd(seed)
    assert_like_loops(wc.truth.judges(as_classes(rows), epsilon=0.15), *by_worker(rows), 0.15)


def test_numbers_equal_plain_loops():
    rows, _ = judged_crowd(2, n_tasks=100, n_classes=6)
    found = wc.truth.judges(as_numbers(rows), epsilon=0.2)
    assert_like_loops(found, *by_worker(rows), 0.2, score=nearness)


def test_ordered_classes_are_compared_by_their_distance():
    rows, _ = judged_crowd(3, n_tasks=100, n_classes=4)
    labels = as_classes(rows, ordered=True, classes=["a", "b", "c", "d"])
    assert_like_loops(wc.truth.judges(labels), *by_worker(rows), 0.1, score=nearness)


def test_distances_do_not_depend_on_the_level_of_numbers():
    rows, _ = judged_crowd(2, n_tasks=80, n_classes=6)
    plain = wc.truth.judges(as_numbers(rows)).columns
    high = [(task, worker, label + 1e6, kind) for task, worker, label, kind in rows]
    shifted = wc.truth.judges(as_numbers(high)).columns
    for name in ("omega", "rho", "score", "ceiling", "leniency"):
        np.testing.assert_allclose(shifted[name], plain[name], atol=1e-7)


@pytest.mark.parametrize(("name", "epsilon"), PUBLISHED)
def test_published_figures(data_directory, name, epsilon):
    rows = read_rows(data_directory / name / "answers.csv")
    task, worker, label, kind = zip(*rows, strict=True)
    labels = wc.CrowdLabels.from_arrays(task, worker, label, worker_kind=kind)
    found = wc.truth.judges(labels, epsilon=epsilon)
    for judge, omega, rho in zip(
        *(found.columns[column] for column in ("judge", "omega", "rho")), strict=True
    ):
        assert (omega, round(rho, 4)) == PUBLISHED[name, epsilon][judge]
    assert_like_loops(found, *by_worker(rows), epsilon)


def test_people_with_fewer_than_30_tasks_are_left_out():
    rows, _ = judged_crowd(0, n_tasks=60, share=1.0, n_people=3)
    few = [row for row in rows if row[1] != "human2" or int(row[0][1:]) < 29]
    found = wc.truth.judges(as_classes(few)).tables["judge_people"]
    assert set(found["person"]) == {"human0", "human1"}


def test_benjamini_yekutieli_equals_scipy():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = rng.random(rng.integers(1, 12)) ** 4
        expected = false_discovery_control(p, method="by") <= 0.05
        np.testing.assert_array_equal(benjamini_yekutieli(p), expected)
    both = benjamini_yekutieli(np.array([[0.001, 0.9, np.nan], [0.9, 0.9, 0.9]]))
    assert both.tolist() == [[True, False, False], [False, False, False]]


def test_means_of_groups_equal_t_tests():
    rng = np.random.default_rng(1)
    values, group = rng.integers(-1, 2, 90).astype(float), rng.integers(0, 3, 90)
    found = clustered_means(values, group, 3)
    expected = [ttest_1samp(values[group == g], 0.1, alternative="less").pvalue for g in range(3)]
    np.testing.assert_allclose(below(found, 0.1), expected, rtol=1e-12)


def test_equal_values_of_a_cluster_count_once():
    once = np.random.default_rng(2).normal(size=40)
    often, cluster = np.repeat(once, 5), np.repeat(np.arange(40), 5)
    one = clustered_means(once, np.zeros(40, dtype=int), 1)
    all_of_them = clustered_means(often, np.zeros(200, dtype=int), 1, cluster)
    np.testing.assert_allclose(all_of_them.error, one.error)
    assert all_of_them.df.tolist() == one.df.tolist() == [39]
    alone = clustered_means(often, np.zeros(200, dtype=int), 1, np.zeros(200, dtype=int))
    assert below(alone, 0.5).tolist() == [1.0]  # a single cluster proves nothing


def test_without_variance_the_mean_decides():
    values = np.repeat([-1.0, 0.0, 1.0], 30)
    means = clustered_means(values, np.repeat([0, 1, 2], 30), 3)
    assert below(means, 0.1).tolist() == [0.0, 0.0, 1.0]
    assert below(means, 0.0).tolist() == [0.0, 1.0, 1.0]


def test_clusters_make_the_test_humbler():
    rows, _ = judged_crowd(5, n_tasks=90, n_people=3, share=1.0, judges=(0.8,))
    copies = [(f"{task}-{n}", *rest) for task, *rest in rows for n in range(5)]
    alone, copied = as_classes(rows), as_classes(copies)
    cluster = {task: task.split("-")[0] for task in copied.tasks.tolist()}
    clustered = wc.truth.judges(copied, cluster=cluster).tables["judge_people"]["p"]
    complete = {row[0] for row in rows if row[1] == "model0"}
    assert len(complete) < 90  # some tasks without an answer of the judge are left out
    np.testing.assert_allclose(
        clustered, wc.truth.judges(alone).tables["judge_people"]["p"], rtol=1e-9
    )
    plain = wc.truth.judges(copied).tables["judge_people"]["p"]
    assert (plain < clustered).all()
