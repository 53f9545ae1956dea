"""Second opinions against a pass computed label by label, and on crowds with a known truth."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.checks import second_opinion
from wisecrowd.checks.second_opinion import judge_again, unsupported_lead
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.votes import vote_table


def crowd(n_tasks=600, workers=None, per_task=5, **options):
    workers = 20 * simulate.OneCoinWorkers(6, 2) if workers is None else workers
    return simulate.crowd(n_tasks, workers, simulate.PerTask(per_task), **options)


def voted(labels):
    return vote_table(labels).argmax(axis=1).astype(np.int32)


def lead_of(labels, codes):
    return unsupported_lead(labels, vote_table(labels), codes.astype(np.int32))


def test_a_pass_leaves_every_label_out_of_its_own_worker():
    made = crowd(12, 4 * simulate.OneCoinWorkers(6, 2), 3, n_classes=3)
    labels, K = made.labels, 3
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(K), labels.n_tasks)
    s, c = 8.0, 4.0
    found = judge_again(labels, q, (s, c), 0)

    rows = list(zip(labels.task, labels.worker, labels.label, strict=True))
    right = sum(q[i, y] for i, _, y in rows)
    mean = (right + 7) / (len(rows) + 10)
    wrong = np.full((K, K), 50 * 0.3 / (K - 1))
    for i, _, y in rows:
        wrong[:, y] += q[i]
    np.fill_diagonal(wrong, 0)
    wrong /= wrong.sum(axis=1, keepdims=True)
    score = np.log(np.tile(q.sum(axis=0) + 1, (labels.n_tasks, 1)))
    for e, (i, j, y) in enumerate(rows):
        others = [row for f, row in enumerate(rows) if f != e and row[1] == j]
        coin = (sum(q[a, b] for a, _, b in others) + s * mean) / (len(others) + s)
        for k in range(K):
            usual = coin if k == y else (1 - coin) * wrong[k, y]
            count = sum(q[a, k] for a, _, b in others if b == y)
            score[i, k] += np.log((count + c * usual) / (sum(q[a, k] for a, _, _ in others) + c))
    expected = np.exp(score - score.max(axis=1, keepdims=True))
    assert found == pytest.approx(expected / expected.sum(axis=1, keepdims=True), abs=1e-12)


def test_weights_of_one_change_nothing():
    made = crowd(50, 5 * simulate.OneCoinWorkers(6, 2), 5)
    labels = made.labels
    q = np.full((50, 2), 0.5)
    heavy = CrowdLabels(labels.task, labels.worker, labels.label, labels.tasks, labels.workers,
                        labels.classes, weight=np.ones(labels.n_annotations))  # fmt: skip
    plain, weighted = (judge_again(one, q, (8.0, 4.0), 2) for one in (labels, heavy))
    assert weighted == pytest.approx(plain, abs=1e-12)


def test_the_order_of_classes_does_not_matter():
    made = crowd(200, n_classes=3)
    labels, order = made.labels, np.array([2, 0, 1])
    place = np.argsort(order).astype(np.int32)
    turned = CrowdLabels(labels.task, labels.worker, place[labels.label], labels.tasks,
                         labels.workers, labels.classes[order])  # fmt: skip
    q = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    one, other = judge_again(labels, q, None, 5), judge_again(turned, q[:, order], None, 5)
    assert other == pytest.approx(one[:, order], abs=1e-9)


def test_the_vote_itself_needs_no_support():
    labels = crowd().labels
    assert lead_of(labels, voted(labels)) is None


def test_a_loss_of_more_than_a_point_is_impossible_for_few_changes():
    labels = crowd(600).labels
    codes = voted(labels)
    codes[:6] = 1 - codes[:6]
    assert lead_of(labels, codes) is None


def test_labels_overruled_at_random_are_a_loss():
    labels = crowd().labels
    codes = voted(labels)
    codes[::8] = 1 - codes[::8]
    lead = lead_of(labels, codes)
    assert lead.mean < -0.03
    assert lead.safety < 0
    assert lead.by_task[::8].sum() == pytest.approx(lead.by_task.sum())


def test_the_truth_is_supported():
    workers = 10 * simulate.OneCoinWorkers(30, 1) + 10 * simulate.Spammers()
    made = crowd(800, workers)
    assert np.mean(voted(made.labels) != made.truth_codes) > 0.05
    assert lead_of(made.labels, made.truth_codes) is None


def test_a_rare_class_is_supported_though_the_vote_finds_many():
    made = crowd(2000, 50 * simulate.OneCoinWorkers(6, 2), class_prior=[0.95, 0.05])
    assert np.mean(voted(made.labels)) > 0.1
    assert lead_of(made.labels, made.truth_codes) is None


def test_very_many_cells_are_not_judged(monkeypatch):
    labels = crowd().labels
    monkeypatch.setattr(second_opinion, "MOST_CELLS", labels.n_annotations)
    assert lead_of(labels, 1 - voted(labels)) is None
