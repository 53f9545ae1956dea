"""GraphSmoothed: no effect at strength 0, merging at infinity, two tasks by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from wisecrowd.aggregation import DawidSkene, GraphSmoothed, MajorityVote, OneCoin
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.task_graph import homophily, nearest_neighbours, task_matrix
from wisecrowd.simulate import OneCoinWorkers, crowd


def ring_of_classes(n=120, n_labels=3, seed=0, noise=0.35):
    """Return labels of tasks in three runs of equal classes, the edges of the runs, the classes."""
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1, 2], n // 3)
    task = np.repeat(np.arange(n), n_labels)
    worker = rng.permuted(np.tile(np.arange(8), (n, 1)), axis=1)[:, :n_labels].ravel()
    wrong = rng.random(len(task)) < noise
    label = np.where(wrong, rng.integers(0, 3, len(task)), truth[task])
    edges = [(i, i + step) for i in range(n) for step in (1, 2, 3) if i + step < n]
    return CrowdLabels.from_arrays(task, worker, label), np.array(edges).T, truth


def test_without_an_effect_it_is_the_method():
    labels, edges, _ = ring_of_classes()
    plain = DawidSkene().fit(labels)
    for graph, beta in ((None, "auto"), (tuple(edges), 0.0)):
        smoothed = GraphSmoothed(graph=graph, beta=beta).fit(labels)
        assert np.array_equal(smoothed.probas_, plain.probas_)
        assert np.array_equal(smoothed.confusion_, plain.confusion_)
        assert smoothed.history_ == plain.history_


def test_neighbours_of_the_same_class_help():
    labels, edges, truth = ring_of_classes()
    plain = DawidSkene().fit(labels).score(labels, truth)
    smoothed = GraphSmoothed(graph=tuple(edges)).fit(labels)
    assert smoothed.score(labels, truth) > plain + 0.1
    assert smoothed.homophily_ > 0.8
    by_matrix = GraphSmoothed(graph=task_matrix(tuple(edges), labels)[0]).fit(labels)
    assert np.array_equal(by_matrix.probas_, smoothed.probas_)
    part = labels[np.arange(0, 60)]
    assert GraphSmoothed(graph=task_matrix(tuple(edges), labels)[0]).fit(part).n_rounds_ > 1
    chosen = GraphSmoothed("one-coin", graph=tuple(edges), beta="held-out", max_rounds=8)
    assert chosen.fit(labels).beta_ >= 0.2


def test_random_edges_are_refused():
    labels, _, _ = ring_of_classes()
    rng = np.random.default_rng(1)
    with pytest.warns(UserWarning, match="hardly agree beyond chance"):
        smoothed = GraphSmoothed(graph=tuple(rng.integers(0, 120, (2, 400)))).fit(labels)
    assert smoothed.beta_ == 0.0
    assert np.array_equal(smoothed.probas_, DawidSkene().fit(labels).probas_)


def test_one_label_per_task_needs_few_parameters():
    labels, edges, truth = ring_of_classes(n_labels=1)
    with pytest.warns(UserWarning, match="one-coin"):
        refused = GraphSmoothed(graph=tuple(edges)).fit(labels)
    assert refused.beta_ == 0.0
    smoothed = GraphSmoothed("one-coin", graph=tuple(edges)).fit(labels)
    assert smoothed.beta_ > 0
    sure = [one.probas_[np.arange(120), truth].mean() for one in (smoothed, OneCoin().fit(labels))]
    assert sure[0] > sure[1] + 0.02


@pytest.mark.parametrize("beta", [0.3, 0.8])
def test_two_tasks_are_nearly_exact(beta):
    labels = (["a", "a", "a", "b"], ["u", "v", "w", "u"], [0, 0, 0, 1])
    method = OneCoin(max_iter=1)
    smoothed = GraphSmoothed(method, graph=(["a"], ["b"]), beta=beta).fit(labels)
    # Labels given the worker accuracies of the last round, with even classes before any label.
    even = np.full((2, 2), 0.5)
    evidence = smoothed.methods_[0].predict_proba(labels, task_prior=even)
    joint = evidence[0][:, None] * evidence[1][None, :] * np.exp(beta * np.eye(2))
    joint /= joint.sum()
    assert np.abs(smoothed.probas_[0] - joint.sum(axis=1)).max() < 0.02
    assert np.abs(smoothed.probas_[1] - joint.sum(axis=0)).max() < 0.02


def test_a_strong_graph_of_pairs_merges_them():
    made = crowd(80, 6 * OneCoinWorkers(7, 3), n_classes=2, random_state=0).labels
    pairs = np.arange(0, 80, 2)
    task = made.task
    merged = CrowdLabels.from_arrays(task // 2, made.worker + 100 * (task % 2), made.label)
    votes = MajorityVote().fit(merged)
    smoothed = GraphSmoothed("majority-vote", graph=(pairs, pairs + 1), beta=50.0).fit(made)
    clear = np.abs(votes.probas_[:, 0] - 0.5) > 0.05
    assert clear.sum() > 20
    assert np.array_equal(smoothed.labels_[1::2][clear], votes.labels_[clear])
    assert np.array_equal(smoothed.labels_[::2][clear], votes.labels_[clear])


def test_gold_and_neighbours():
    labels, edges, truth = ring_of_classes()
    gold = {5: (truth[5] + 1) % 3}
    smoothed = GraphSmoothed(graph=tuple(edges)).fit(labels, gold=gold)
    assert smoothed.labels_[5] == gold[5]


def test_graphs_from_ids():
    labels = CrowdLabels.from_arrays(["a", "b", "c"], ["u"] * 3, [0, 0, 1])
    matrix, unknown = task_matrix((["a", "b", "b", "c", "a"], ["b", "a", "x", "c", "b"]), labels)
    assert unknown == 1
    assert matrix.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    weighted, _ = task_matrix((["a", "b"], ["b", "a"], [0.5, 2.0]), labels)
    assert weighted[0, 1] == weighted[1, 0] == 2.0
    with pytest.raises(DataError, match="shape"):
        task_matrix(sparse.eye(5), labels)
    with pytest.raises(DataError, match="negative"):
        task_matrix((["a"], ["b"], [-1.0]), labels)
    with pytest.raises(ParameterError, match="different lengths"):
        GraphSmoothed(graph=(["a"], ["b", "c"])).fit(labels)
    with pytest.raises(ParameterError, match="neither a sparse matrix"):
        GraphSmoothed(graph="edges").fit(labels)


def test_homophily_by_hand():
    labels = CrowdLabels.from_matrix([["a", "a"], ["a", "b"], ["b", "b"]])
    edges = sparse.csr_matrix(([1.0, 1.0], ([0, 1], [1, 2])), shape=(3, 3))
    found = homophily(labels, edges + edges.T)
    assert (found.across, found.chance, found.within) == pytest.approx((0.5, 0.5, 2 / 3))
    assert found.value == 0.0


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_nearest_neighbours_by_brute_force(make, monkeypatch):
    from wisecrowd.kinds.classes.families import task_graph

    monkeypatch.setattr(task_graph, "BLOCK", 70)  # several blocks
    X = np.random.default_rng(0).random((40, 5))
    edges = nearest_neighbours(make(X), k=3)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    table = unit @ unit.T
    np.fill_diagonal(table, -1)
    wanted = np.argsort(-table, axis=1)[:, :3]
    assert np.array_equal(edges.neighbour.reshape(40, 3), wanted)
    assert np.array_equal(edges.task, np.repeat(np.arange(40), 3))
