"""Three groups: their moments by brute force, and exact confusion matrices from exact moments."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.moments import third_moments as module
from wisecrowd.kinds.classes.families.moments.third_moments import (
    GroupMoments,
    _misfit,
    as_probabilities,
    balanced_groups,
    busiest_first,
    class_shares,
    connected_parts,
    group_means,
    group_moments,
    mixture_of,
    responses_of,
    symmetric,
    tensor_components,
    triple_moments,
    unidentified_workers,
    worker_confusions,
    worker_tables,
)
from wisecrowd.simulate import OneCoinWorkers, PerTask, crowd


def population(confusion, prior, group, scale=1.0):
    """Return the exact group moments and worker tables of a crowd that labels everything."""
    means = np.array([confusion[group == g].sum(axis=0) for g in range(3)])
    pairs = np.einsum("k,gkl,hkm->ghlm", prior, means, means)
    triple = np.einsum("k,ka,kb,kc->abc", prior, *means)
    tables = np.einsum("k,jkl,gkm->jglm", prior, confusion, means)
    return GroupMoments(scale * pairs, scale**2 * triple), scale * tables


@pytest.mark.parametrize(("n_workers", "n_classes"), [(3, 2), (4, 3), (9, 4), (12, 6)])
def test_exact_moments_give_every_confusion_matrix(experts, error, n_workers, n_classes):
    for seed in range(3):
        confusion, prior = experts(n_workers, n_classes, seed, n_experts=0)
        group = balanced_groups(np.ones(n_workers), np.arange(n_workers))
        moments, tables = population(confusion, prior, group)
        weights, means = group_means(moments, np.random.default_rng(seed))
        found, known = worker_confusions(tables, group, weights, means)
        assert known.all()
        # Entries below the floor are raised to it, and nothing else is.
        assert error(found, confusion) < 1e-8
        np.testing.assert_allclose(np.sort(weights), np.sort(prior), atol=1e-9)


def test_a_common_scale_of_the_moments_says_nothing(experts):
    confusion, prior = experts(6, 3, 5, n_experts=0)
    group = np.array([0, 1, 2, 0, 1, 2])
    found = []
    for scale in (1.0, 0.2):
        moments, tables = population(confusion, prior, group, scale)
        weights, means = group_means(moments, np.random.default_rng(0))
        found.append(worker_confusions(tables, group, weights, means)[0])
    np.testing.assert_allclose(found[0], found[1], atol=1e-8)


def test_own_group_does_not_count(experts):
    confusion, prior = experts(6, 3, 2, n_experts=0)
    group = np.array([0, 1, 2, 0, 1, 2])
    moments, tables = population(confusion, prior, group)
    weights, means = group_means(moments, np.random.default_rng(0))
    expected, _ = worker_confusions(tables, group, weights, means)
    tables[np.arange(6), group] = 1e3 * np.random.default_rng(0).random((6, 3, 3))
    found, _ = worker_confusions(tables, group, weights, means)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_moments_of_low_rank_have_no_solution(experts):
    confusion, prior = experts(6, 3, 0, n_experts=0)
    confusion[:, 2] = confusion[:, 1]  # nobody tells class 2 from class 1
    moments, _ = population(confusion, prior, np.array([0, 1, 2, 0, 1, 2]))
    assert group_means(moments, np.random.default_rng(0)) is None


def test_group_moments_and_tables_by_brute_force():
    rng = np.random.default_rng(1)
    made = crowd(30, 7 * OneCoinWorkers(4, 2), PerTask(4), class_prior=[0.5, 0.3, 0.2])
    labels = made.labels
    weight = rng.uniform(0.5, 2, labels.n_annotations)
    group = rng.integers(0, 3, 7)
    responses = responses_of(labels.task, group[labels.worker], labels.label, weight, (30, 3))
    moments = group_moments(responses)
    cell = labels.worker * 3 + labels.label
    tables = worker_tables(labels.task, cell, weight, responses, 7)
    expected = np.zeros((3, 30, 3))
    for i, j, y, w in zip(labels.task, labels.worker, labels.label, weight, strict=True):
        expected[group[j], i, y] += w
    np.testing.assert_allclose(responses, expected)
    triple = sum(np.einsum("a,b,c->abc", *expected[:, i]) for i in range(30)) / 30
    np.testing.assert_allclose(moments.triple, triple)
    np.testing.assert_allclose(
        moments.pairs[0, 2], sum(np.outer(expected[0, i], expected[2, i]) for i in range(30)) / 30
    )
    table = np.zeros((7, 3, 3, 3))
    for i, j, y, w in zip(labels.task, labels.worker, labels.label, weight, strict=True):
        table[j, :, y] += w * expected[:, i]
    np.testing.assert_allclose(tables, table)


def test_groups_are_of_about_equal_size():
    size = np.random.default_rng(0).pareto(1.0, 60) + 1
    group = balanced_groups(size, np.argsort(-size))
    filled = np.bincount(group, size)
    assert filled.max() - filled.min() <= size.max()
    assert np.bincount(balanced_groups(np.ones(9), np.arange(9))).tolist() == [3, 3, 3]


def test_names_do_not_decide_who_comes_first():
    made = crowd(40, 8 * OneCoinWorkers(5, 2), PerTask(4), class_prior=[0.6, 0.4])
    labels = made.labels
    turned = CrowdLabels.from_arrays(labels.task, 7 - labels.worker, 1 - labels.label)
    np.testing.assert_array_equal(busiest_first(labels), 7 - busiest_first(turned))


def test_connected_parts_are_those_that_share_tasks():
    labels = CrowdLabels.from_arrays([0, 0, 1, 1, 2, 3], [0, 1, 1, 2, 3, 4], [0, 1, 0, 1, 0, 1])
    part, _ = connected_parts(labels)
    assert part[0] == part[1] == part[2]
    assert len({int(part[0]), int(part[3]), int(part[4])}) == 3


def test_small_parts():
    rows = as_probabilities(np.array([[-2.0, -6.0], [3.0, 0.0], [0.5, 0.5]]))
    np.testing.assert_allclose(rows, [[0.25, 0.75], [1, 0], [0.5, 0.5]], atol=2e-9)
    labels = CrowdLabels.from_arrays([0, 0, 1], ["a", "b", "a"], [0, 1, 0])
    np.testing.assert_allclose(class_shares(labels, np.zeros(2)), [0.75, 0.25])
    np.testing.assert_allclose(class_shares(labels, np.array([1.0, 3.0])), [0.25, 0.75])
    assert unidentified_workers(labels, np.zeros(2, dtype=bool)) == ()
    assert unidentified_workers(labels, np.array([True, False]))[0].explanation.startswith(
        "1 of 2 workers"
    )


def test_misfit_is_one_minus_the_squared_cosine_of_every_moment(experts):
    confusion, prior = experts(6, 3, 5, n_experts=0)
    moments, _ = population(confusion, prior, np.array([0, 1, 2, 0, 1, 2]), scale=0.3)
    exact = np.array([confusion[[0, 3]].sum(axis=0), confusion[[1, 4]].sum(axis=0),
                      confusion[[2, 5]].sum(axis=0)])  # fmt: skip
    assert _misfit(moments, prior, exact) == pytest.approx(0, abs=1e-12)
    means = np.random.default_rng(1).random((3, 3, 3))
    expected = 0.0
    for given, order in ((moments.pairs[0, 1], (0, 1)), (moments.pairs[0, 2], (0, 2)),
                         (moments.pairs[1, 2], (1, 2)), (moments.triple, (0, 1, 2))):  # fmt: skip
        fitted = np.zeros_like(given)
        for k in range(3):
            product = prior[k] * means[order[0]][k]
            for g in order[1:]:
                product = np.multiply.outer(product, means[g][k])
            fitted += product
        cosine = (given * fitted).sum() / np.sqrt((given**2).sum() * (fitted**2).sum())
        expected += 1 - cosine**2
    assert _misfit(moments, prior, means) == pytest.approx(expected)


def test_rounding_does_not_choose_among_equally_full_groups():
    size = np.array([0.1, 0.2, 0.3, 0.3, 0.2, 0.1, 0.1])
    order = np.arange(7)
    expected = balanced_groups(10 * size.round(1), order)
    for seed in range(20):
        noise = 1e-14 * np.random.default_rng(seed).standard_normal(7)
        assert balanced_groups(size + noise, order).tolist() == expected.tolist()
    assert balanced_groups(1e-12 * size, order).tolist() == expected.tolist()


def mixture(n_classes, seed):
    rng = np.random.default_rng(seed)
    means = rng.dirichlet(np.ones(n_classes), n_classes) + np.eye(n_classes)
    weights = rng.dirichlet(np.full(n_classes, 4.0))
    second = np.einsum("k,ka,kb->ab", weights, means, means)
    third = np.einsum("k,ka,kb,kc->abc", weights, means, means, means)
    return weights, means, second, third


@pytest.mark.parametrize("n_classes", [1, 2, 3, 6])
def test_exact_moments_give_the_mixture(n_classes):
    for seed in range(3):
        weights, means, second, third = mixture(n_classes, seed)
        found, found_means = mixture_of(second, third, np.random.default_rng(seed))
        place = [int(np.abs(found_means - mean).sum(axis=1).argmin()) for mean in means]
        assert sorted(place) == list(range(n_classes))
        np.testing.assert_allclose(found[place], weights, atol=1e-10)
        np.testing.assert_allclose(found_means[place], means, atol=1e-10)


def test_other_starts_find_the_same_mixture():
    _, _, second, third = mixture(4, 7)
    one, _ = mixture_of(second, third, np.random.default_rng(0))
    two, _ = mixture_of(second, third, np.random.default_rng(1))
    np.testing.assert_allclose(np.sort(one), np.sort(two), atol=1e-12)


def test_noise_moves_the_mixture_in_proportion():
    _, means, second, third = mixture(3, 1)
    noise = np.random.default_rng(2).normal(size=third.shape)
    errors = []
    for size in (1e-4, 1e-5):
        _, found = mixture_of(second, third + size * noise, np.random.default_rng(0))
        errors.append(max(np.abs(found - mean).max(axis=1).min() for mean in means))
    assert 5 < errors[0] / errors[1] < 20
    assert errors[0] < 0.05


def test_too_few_components_are_no_mixture():
    _, means, _, third = mixture(3, 0)
    flat = np.outer(means[0], means[0]) + np.outer(means[1], means[1])
    assert mixture_of(flat, third, np.random.default_rng(0)) is None
    assert mixture_of(np.zeros((3, 3)), np.zeros((3, 3, 3)), np.random.default_rng(0)) is None
    assert mixture_of(np.eye(3), np.zeros((3, 3, 3)), np.random.default_rng(0)) is None


def test_orthonormal_components_are_found_with_their_strengths():
    rng = np.random.default_rng(3)
    basis, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    strength = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    tensor = np.einsum("k,ka,kb,kc->abc", strength, basis, basis, basis)
    found, directions = tensor_components(tensor, rng)
    np.testing.assert_allclose(np.sort(found), strength[::-1], atol=1e-12)
    np.testing.assert_allclose(directions @ directions.T, np.eye(5), atol=1e-10)


def test_symmetric_part_of_a_tensor_has_all_orders_alike():
    tensor = np.random.default_rng(4).normal(size=(3, 3, 3))
    part = symmetric(tensor)
    for order in permutations(range(3)):
        np.testing.assert_allclose(part, part.transpose(order), atol=1e-15)
    np.testing.assert_allclose(symmetric(part), part, atol=1e-15)


def random_labels(n=150, n_workers=8, seed=0):
    rng = np.random.default_rng(seed)
    return CrowdLabels.from_arrays(
        rng.integers(0, 25, n), rng.integers(0, n_workers, n), rng.integers(0, 3, n),
        weight=rng.integers(0, 3, n).astype(float), duplicates="keep",
    )  # fmt: skip


def brute_force(labels, workers):
    counts = np.zeros((labels.n_classes,) * 3)
    rows = [np.flatnonzero(labels.worker == j) for j in workers]
    for e in rows[0]:
        for f in rows[1][labels.task[rows[1]] == labels.task[e]]:
            for g in rows[2][labels.task[rows[2]] == labels.task[e]]:
                product = labels.weight[e] * labels.weight[f] * labels.weight[g]
                counts[labels.label[e], labels.label[f], labels.label[g]] += product
    return counts


@pytest.mark.parametrize("rows", [module.ROWS, 20])
def test_counts_are_those_of_all_triples_of_annotations(monkeypatch, rows):
    monkeypatch.setattr(module, "ROWS", rows)
    labels = random_labels()
    found = triple_moments(labels, min_shared=3)
    expected = {x: brute_force(labels, x) for x in combinations(range(labels.n_workers), 3)}
    expected = {x: counts for x, counts in expected.items() if counts.sum() >= 3}
    assert [tuple(x) for x in found.workers.tolist()] == sorted(expected)
    assert 0 < found.n_triples < 56
    for t, workers in enumerate(sorted(expected)):
        np.testing.assert_array_equal(found.counts[t], expected[workers])
        assert found.n_shared[t] == expected[workers].sum()
    np.testing.assert_allclose(found.tables.sum(axis=(1, 2, 3)), 1.0)


def test_a_budget_draws_triples_and_says_so():
    labels = random_labels(n=400, n_workers=14)
    found = triple_moments(labels, max_triples=30, rng=np.random.default_rng(1))
    assert found.n_triples == 30
    assert "drawn" in str(found.findings[0])
    assert (np.diff(found.workers, axis=1) > 0).all()
    assert len(np.unique(found.workers, axis=0)) == 30
    assert len(np.unique(found.workers)) == 14  # nobody is left out
    for workers, counts in zip(found.workers[:5], found.counts[:5], strict=True):
        np.testing.assert_array_equal(counts, brute_force(labels, workers))
    again = triple_moments(labels, max_triples=30, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(found.workers, again.workers)


def test_no_triple():
    labels = CrowdLabels.from_matrix([[0, 1], [1, 1]])
    assert triple_moments(labels).n_triples == 0
