"""Held-out labels: the judge by hand, folds, standard errors, and crowds with a known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import wisecrowd as wc
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.inference import held_out
from wisecrowd.inference.held_out import (
    HeldOutScore,
    annotation_folds,
    paired_difference,
    scoring_plan,
)
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families import held_out_labels
from wisecrowd.kinds.classes.families.held_out_labels import (
    fit_judge,
    held_out_score,
    score_hidden_labels,
)


def made_labels(n_labels, n_workers=8, n_classes=3, seed=0):
    """Return labels at random, ``n_labels[i]`` of task i by different workers."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(len(n_labels)), n_labels)
    worker = np.concatenate([rng.permutation(n_workers)[:n] for n in n_labels]).astype(int)
    return CrowdLabels.from_arrays(
        task, worker, rng.integers(n_classes, size=len(task)), type="labels",
        tasks=range(len(n_labels)), workers=range(n_workers), classes=range(n_classes),
    )  # fmt: skip


def one_hot(codes, n_classes):
    return np.eye(n_classes)[np.asarray(codes)]


# --------------------------------------------------------------------------------------- folds


@given(
    st.lists(st.integers(0, 8), min_size=2, max_size=40).filter(lambda sizes: sum(sizes) > 0),
    st.integers(2, 7),
)
def test_a_task_with_two_labels_keeps_one_and_folds_are_even(n_labels, n_folds):
    labels = made_labels(n_labels)
    folds = annotation_folds(labels, n_folds)
    assert (folds[np.asarray(n_labels)[labels.task] == 1] == -1).all()
    assert (folds[np.asarray(n_labels)[labels.task] > 1] >= 0).all()
    for fold in range(n_folds):
        left = np.bincount(labels.task[folds != fold], minlength=labels.n_tasks)
        assert (left[np.asarray(n_labels) >= 1] >= 1).all()
    sizes = np.bincount(folds[folds >= 0], minlength=n_folds)
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(folds, annotation_folds(labels, n_folds))


def test_every_fold_hides_labels_of_every_worker_on_every_class():
    """Tasks whose classes repeat with the folds' own period would defeat a rule by position."""
    labels = made_labels([5] * 500, n_workers=5)
    folds = annotation_folds(labels)
    period = labels.task % 5
    cell = np.bincount((folds * 5 + labels.worker) * 5 + period, minlength=125)
    assert cell.min() > 5  # 20 are expected


def test_labels_without_weight_are_not_hidden():
    labels = made_labels([3, 2])
    labels = replace(labels, weight=np.array([1.0, 0.0, 2.0, 1.0, 0.0]))
    folds = annotation_folds(labels)
    assert folds[1] == folds[3] == folds[4] == -1
    assert folds[0] >= 0
    assert folds[2] >= 0


def test_folds_need_two():
    with pytest.raises(ParameterError, match="n_folds is 1"):
        annotation_folds(made_labels([2]), 1)


# ---------------------------------------------------------------------------------------- plan


@pytest.mark.parametrize(("n_tasks", "n_used"), [(2000, 5), (2500, 2)])
def test_all_folds_of_few_labels_and_two_of_many(n_tasks, n_used):
    labels = made_labels([6] * n_tasks)
    plan = scoring_plan(labels)
    assert plan.labels is labels
    assert plan.n_folds_used == n_used
    assert plan.n_hidden == pytest.approx(6 * n_tasks * n_used / 5, abs=2)
    assert scoring_plan(labels, 1).n_folds_used == 1


def test_very_many_labels_are_sampled_by_task(monkeypatch):
    monkeypatch.setattr(held_out, "MOST_LABELS", 300)
    labels = made_labels([1] * 90 + [8] * 60)
    plan = scoring_plan(labels)
    assert 300 <= plan.labels.n_annotations <= 307
    np.testing.assert_array_equal(
        plan.labels.labels_per_task, labels.labels_per_task[plan.labels.rows]
    )
    np.testing.assert_array_equal(plan.labels.tasks, labels.tasks[plan.labels.rows])


def test_one_label_per_task_cannot_be_hidden():
    plan = scoring_plan(made_labels([1] * 5))
    assert plan.n_hidden == 0
    with pytest.raises(DataError, match="tasks with two labels or more"):
        held_out_score(lambda labels: MajorityVote().fit(labels).probas_, plan)


# --------------------------------------------------------------------------------------- judge


def judge_by_hand(visible, q, worker, label, n_workers, n_classes):
    """Return p(label of the worker | q), by loops, from the formulas; visible: (i, j, y, w)."""
    from scipy.special import betaln, gammaln

    J, K = n_workers, n_classes
    C = np.zeros((J, K, K))
    right, total, share = np.zeros(J), np.zeros(J), np.ones(K)
    for i, j, y, w in visible:
        for k in range(K):
            C[j, k, y] += w * q[i][k]
        right[j] += w * q[i][y]
        total[j] += w
        share[y] += w
    share /= share.sum()
    base = [[0.7 if k == m else 0.3 / (K - 1) for m in range(K)] for k in range(K)]
    mu = C.sum(axis=0) + 50 * np.array(base)
    mu /= mu.sum(axis=1, keepdims=True)
    mean = (right.sum() + 7) / (total.sum() + 10)
    s = max(
        2.0 ** np.arange(8),
        key=lambda s: sum(
            betaln(s * mean + r, s * (1 - mean) + t - r) - betaln(s * mean, s * (1 - mean))
            for r, t in zip(right, total, strict=True)
        ),
    )
    coin = (right + s * mean) / (total + s)
    odds = coin / (1 - coin) / (mean / (1 - mean))
    middle = sum(share[k] * mu[k, k] for k in range(K))
    odds *= middle / (1 - middle)
    m = np.empty((J, K, K))
    for j in range(J):
        for k in range(K):
            p = odds[j] / (1 + odds[j])
            for y in range(K):
                m[j, k, y] = p if k == y else (1 - p) * mu[k, y] / (1 - mu[k, k])

    def evidence(c):
        rows = gammaln(c) - gammaln(c + C.sum(axis=2))
        return rows.sum() + (gammaln(c * m + C) - gammaln(c * m)).sum()

    c = max(2.0 ** np.arange(11), key=evidence)
    theta = (C + c * m) / (C.sum(axis=2, keepdims=True) + c)
    return np.array(
        [sum(row[k] * theta[worker[e], k, label[e]] for k in range(K)) for e, row in enumerate(q)]
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_the_judge_by_hand(weighted):
    labels = made_labels([4, 3, 4, 2], n_workers=4)
    rng = np.random.default_rng(1)
    if weighted:
        labels = replace(labels, weight=rng.uniform(0.5, 4, labels.n_annotations))
    hidden = np.zeros(labels.n_annotations, dtype=bool)
    hidden[labels.indptr[:-1]] = True  # the first label of each task
    q = rng.dirichlet([0.3] * 3, 4)
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    visible = [
        (labels.task[e], labels.worker[e], labels.label[e], weight[e])
        for e in np.flatnonzero(~hidden)
    ]
    expected = judge_by_hand(visible, q, labels.worker[hidden], labels.label[hidden], 4, 3)
    found = score_hidden_labels(labels, hidden, q)
    np.testing.assert_allclose(found, np.log(expected), atol=1e-4)
    np.testing.assert_allclose(np.exp(found), (1 - 1e-6) * expected + 1e-6 / 3, rtol=1e-7)
    np.testing.assert_allclose(score_hidden_labels(labels, hidden, csr_array(q)), found)


def test_predictions_of_all_labels_sum_to_one():
    labels = made_labels([5] * 30)
    hidden = annotation_folds(labels) == 0
    q = np.random.default_rng(0).dirichlet([1.0] * 3, 30)
    judge = fit_judge(labels.select_annotations(~hidden), q)
    rows = labels.select_annotations(hidden)
    total = sum(np.exp(judge.log_probas(replace_labels(rows, y), csr_array(q))) for y in range(3))
    np.testing.assert_allclose(total, 1)


def replace_labels(labels, code):
    return replace_label_codes(labels, np.full(labels.n_annotations, code, dtype=np.int32))


def replace_label_codes(labels, codes):
    return CrowdLabels(
        labels.task, labels.worker, codes, labels.tasks, labels.workers, labels.classes
    )


def test_classes_that_a_sparse_row_omits_have_the_label_shares():
    labels = made_labels([4] * 20)
    hidden = annotation_folds(labels) == 0
    empty = csr_array((20, 3))
    found = score_hidden_labels(labels, hidden, empty)
    visible = labels.select_annotations(~hidden)
    share = (visible.class_totals + 1) / (visible.class_totals + 1).sum()
    np.testing.assert_allclose(np.exp(found), share[labels.label[hidden]], atol=1e-5)


@pytest.mark.parametrize("most_cells", [8 * 9 - 1, 8])
def test_tables_that_are_too_large_leave_coin_and_population(monkeypatch, most_cells):
    """Without the workers' own counts the predictions still sum to one."""
    labels = made_labels([5] * 200)
    q = one_hot(np.random.default_rng(0).integers(3, size=200), 3)
    full = fit_judge(labels, q)
    monkeypatch.setattr(held_out_labels, "MOST_CELLS", most_cells)
    small = fit_judge(labels, q)
    assert full.counts is not None
    assert small.counts is None
    total = sum(np.exp(small.log_probas(replace_labels(labels, y), csr_array(q))) for y in range(3))
    np.testing.assert_allclose(total, 1, atol=1e-9)
    if most_cells > 9:
        np.testing.assert_allclose(small.right, full.right)
        np.testing.assert_allclose(small.wrong, full.wrong)


def test_small_blocks_give_the_same_scores(monkeypatch):
    labels = made_labels([5] * 60)
    hidden = annotation_folds(labels) == 1
    q = np.random.default_rng(0).dirichlet([1.0] * 3, 60)
    expected = score_hidden_labels(labels, hidden, q)
    monkeypatch.setattr(held_out_labels, "BLOCK", 7)
    np.testing.assert_allclose(score_hidden_labels(labels, hidden, q), expected)


def test_strength_is_high_for_equal_workers_and_low_for_different_ones():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=400)

    def strength(accuracy):  # (J, K): probability of a right label of each worker on each class
        task, worker = np.divmod(np.arange(400 * len(accuracy)), len(accuracy))
        right = rng.random(len(task)) < accuracy[worker, truth[task]]
        label = np.where(right, truth[task], 1 - truth[task])
        labels = CrowdLabels.from_arrays(task, worker, label)
        return fit_judge(labels, one_hot(truth, 2)).strength

    assert strength(np.full((20, 2), 0.8)) >= 256
    assert strength(np.array([[0.99, 0.2], [0.2, 0.99]] * 10)) <= 4


def test_strength_of_a_large_table_comes_from_every_mth_worker(monkeypatch):
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=300)
    task, worker = np.divmod(np.arange(300 * 12), 12)
    right = rng.random(len(task)) < np.tile([0.95, 0.6, 0.6], 4)[worker]
    labels = CrowdLabels.from_arrays(task, worker, np.where(right, truth[task], 1 - truth[task]))
    q = one_hot(truth, 2)
    everybody = fit_judge(labels, q)
    monkeypatch.setattr(held_out_labels, "MOST_EVIDENCE", 16)  # of 48 counts: every third worker
    some = fit_judge(labels, q)
    thirds = labels.select_workers(np.arange(0, 12, 3))
    counts = np.zeros((4, 2, 2))
    np.add.at(counts, (thirds.worker, truth[thirds.task], thirds.label), 1)
    rows = np.where(np.eye(2, dtype=bool), everybody.right[::3, None, None], 0)
    mean = np.where(np.eye(2, dtype=bool), rows, 1 - everybody.right[::3, None, None])
    evidence = [dirichlet_evidence(counts, c * mean) for c in 2.0 ** np.arange(11)]
    assert some.strength == 2.0 ** np.argmax(evidence)


def dirichlet_evidence(counts, alpha):
    from scipy.special import gammaln

    rows = gammaln(alpha.sum(axis=2)) - gammaln((counts + alpha).sum(axis=2))
    return rows.sum() + (gammaln(counts + alpha) - gammaln(alpha)).sum()


def test_a_certain_and_wrong_fit_has_a_finite_score():
    labels = made_labels([3] * 10)
    hidden = annotation_folds(labels) == 0
    found = score_hidden_labels(labels, hidden, one_hot(np.zeros(10, int), 3))
    assert np.isfinite(found).all()


def test_one_class_is_certain():
    labels = made_labels([3] * 4, n_classes=1)
    plan = scoring_plan(labels)
    score = held_out_score(lambda some: np.ones((4, 1)), plan)
    assert score.mean == 0
    assert score.standard_error == 0


# -------------------------------------------------------------------------------------- scores


def test_the_truth_predicts_better_than_a_permuted_truth_and_the_vote():
    for seed in range(5):
        crowd = wc.simulate.crowd(300, "25*dirichlet:6,1", n_classes=3, random_state=seed)
        plan = scoring_plan(crowd.labels)
        codes = np.searchsorted(crowd.labels.classes, crowd.truth)
        q = one_hot(codes, 3)
        shuffled = np.random.default_rng(seed).permutation(q)
        true = held_out_score(lambda some, q=q: q, plan)
        wrong = held_out_score(lambda some, q=shuffled: q, plan)
        gap, error = paired_difference(true, wrong)
        assert gap > 5 * error
        vote = held_out_score(lambda some: MajorityVote().fit(some).probas_, plan)
        fit = held_out_score(lambda some: DawidSkene()._fit_without_checks(some).probas_, plan)
        assert true.mean > fit.mean > wrong.mean
        assert true.mean > vote.mean


def test_renamed_classes_do_not_change_the_score():
    """The judge has no preferred class; the diagonal belongs to the names of the posterior."""
    labels = made_labels([4] * 50)
    hidden = annotation_folds(labels) == 0
    q = np.random.default_rng(0).dirichlet([0.5] * 3, 50)
    new = np.array([2, 0, 1])
    renamed = replace_label_codes(labels, new[labels.label].astype(np.int32))
    moved = np.empty_like(q)
    moved[:, new] = q
    np.testing.assert_allclose(
        score_hidden_labels(renamed, hidden, moved), score_hidden_labels(labels, hidden, q)
    )


def test_each_fold_is_hidden_from_the_fit():
    labels = made_labels([4] * 50)
    plan = scoring_plan(labels)
    seen = []

    def fit(visible):
        seen.append(visible.n_annotations)
        assert visible.n_tasks == 50
        assert visible.workers is labels.workers
        return np.full((50, 3), 1 / 3)

    score = held_out_score(fit, plan)
    assert seen == [160] * 5
    assert len(score.per_label) == 200


def test_standard_error_is_over_tasks():
    """Ten equal labels of a task are one observation, not ten."""
    rng = np.random.default_rng(0)
    per_task = rng.normal(size=40)
    single = HeldOutScore(per_task, np.arange(40))
    tenfold = HeldOutScore(np.repeat(per_task, 10), np.repeat(np.arange(40), 10))
    assert single.standard_error == pytest.approx(per_task.std(ddof=1) / np.sqrt(40))
    assert tenfold.standard_error == pytest.approx(single.standard_error)
    assert np.isnan(HeldOutScore(np.ones(3), np.zeros(3, int)).standard_error)


def test_a_weight_of_two_is_two_labels():
    task, values = np.array([0, 0, 1, 2]), np.array([-1.0, -2.0, -0.5, -3.0])
    twice = np.array([0, 0, 0, 1, 2, 2])
    weighted = HeldOutScore(values, task, np.array([1.0, 2.0, 1.0, 2.0]))
    repeated = HeldOutScore(np.array([-1.0, -2.0, -2.0, -0.5, -3.0, -3.0]), twice)
    assert weighted.mean == pytest.approx(repeated.mean)
    assert weighted.standard_error == pytest.approx(repeated.standard_error)


def test_differences_need_the_same_labels():
    a, b = HeldOutScore(np.ones(2), np.arange(2)), HeldOutScore(np.ones(3), np.arange(3))
    with pytest.raises(ValueError, match="same plan"):
        paired_difference(a, b)
