"""The shared loop of weighted votes, and posteriors over the received labels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from wisecrowd import kernels
from wisecrowd.aggregation import MajorityVote, OneCoin, Wawa
from wisecrowd.core.aggregator import Tags
from wisecrowd.engines.threads import get_threads, set_threads
from wisecrowd.inference import engine
from wisecrowd.inference.engine import in_memory
from wisecrowd.inference.monitor import reporting
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families import posteriors
from wisecrowd.kinds.classes.families.iterative_vote import IterativeVote, Votes
from wisecrowd.kinds.classes.prior import TaskPrior


class GivenWeights(IterativeVote):
    """Votes with weights that are known, for the tests."""

    promises: ClassVar[Tags] = Tags()

    def __init__(self, weights=(1.0,), max_iter=5, tol=0.0):
        self.weights, self.max_iter, self.tol = weights, max_iter, tol

    def _new_weights(self, agreement, votes, old, number):
        return np.asarray(self.weights, dtype=np.float64)


def random_labels(n_tasks=50, n_workers=5, n_classes=3, seed=0, **options):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-1, n_classes, (n_tasks, n_workers))
    return CrowdLabels.from_matrix(matrix, missing=-1, classes=range(n_classes), **options)


def test_oracle_weights_give_the_bayes_rule():
    """Log-odds of known accuracies: the class of the largest posterior, by enumeration."""
    accuracy = np.array([0.9, 0.8, 0.6, 0.55, 0.4])
    labels = random_labels(n_tasks=243, n_classes=2)
    weights = np.log(accuracy / (1 - accuracy))
    model = GivenWeights(weights).fit(labels)
    posterior = np.full((labels.n_tasks, 2), 0.5)
    for i, j, label in zip(labels.task, labels.worker, labels.label, strict=True):
        posterior[i] *= np.where(np.arange(2) == label, accuracy[j], 1 - accuracy[j])
    clear = np.abs(np.diff(np.log(posterior), axis=1)[:, 0]) > 1e-9
    assert clear.sum() > 200
    np.testing.assert_array_equal(model.labels_[clear], posterior.argmax(axis=1)[clear])


def test_equal_weights_are_a_majority_vote():
    labels = random_labels()
    weighted = GivenWeights(np.full(5, 0.7)).fit(labels)
    np.testing.assert_allclose(weighted.probas_, MajorityVote().fit(labels).probas_)


def test_a_start_gives_the_first_weights():
    labels = random_labels()
    start = np.random.default_rng(1).dirichlet(np.ones(3), labels.n_tasks)
    agreement = np.bincount(labels.worker, start[labels.task, labels.label], 5)
    expected = GivenWeights(agreement / labels.labels_per_worker, max_iter=1).fit(labels)
    one_round = Wawa(max_iter=1).fit(labels, init=start)
    hard = np.isclose(expected.probas_, expected.probas_.max(axis=1, keepdims=True))
    credit = (hard / hard.sum(axis=1, keepdims=True))[labels.task, labels.label]
    skill = np.bincount(labels.worker, credit, 5) / labels.labels_per_worker
    np.testing.assert_allclose(one_round.vote_weight_, skill)


def test_rounds_are_reported():
    seen = []
    with reporting(seen.append):
        GivenWeights(np.arange(5.0), max_iter=7).fit(random_labels())
    assert [progress.iteration for progress in seen] == [1, 2]  # the second changes nothing


def test_votes_can_be_asked_twice():
    labels = random_labels()
    votes = Votes(in_memory(labels, TaskPrior(np.zeros((1, 3)))))
    first = votes.round(np.ones(5), hard=False)
    votes.round(np.arange(5.0), hard=True)
    np.testing.assert_array_equal(votes.round(np.ones(5), hard=False), first)


# ------------------------------------------------------------------------- dense and sparse results


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("method", [MajorityVote(smoothing=0.3), OneCoin(), OneCoin(prior=(1, 4))])
@pytest.mark.parametrize("options", ["plain", "gold", "prior"])
def test_sparse_posteriors_hold_what_dense_ones_have(monkeypatch, method, options, fast):
    labels = random_labels(n_tasks=80, n_workers=3, n_classes=6)
    given = {}
    if options == "gold":
        given = {"gold": {0: 5, 3: 1, 7: 2}}
    if options == "prior":
        rng = np.random.default_rng(2)
        given = {"task_prior": rng.dirichlet(np.full(6, 0.5), labels.n_tasks)}
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0 if fast else 10**12)
    dense = method.fit(labels, **given)
    expected, chosen, sure = dense.probas_, dense.labels_, dense.confidence_
    monkeypatch.setattr(posteriors, "DENSE_LIMIT", 0)
    sparse = method.fit(labels, **given)
    table = sparse.probas_.tocoo()
    np.testing.assert_allclose(table.data, expected[table.row, table.col], atol=1e-12)
    got = np.zeros_like(expected, dtype=bool)
    got[table.row, table.col] = True
    assert got[labels.task, labels.label].all()
    np.testing.assert_array_equal(sparse.labels_, chosen)  # also where nobody chose it
    np.testing.assert_allclose(sparse.confidence_, sure, atol=1e-12)


def test_sparse_ties_of_unlabelled_tasks_show(monkeypatch):
    monkeypatch.setattr(posteriors, "DENSE_LIMIT", 0)
    labels = CrowdLabels.from_arrays(["s"], ["w"], ["c"], classes=["a", "b", "c"], tasks=["s", "t"])
    model = MajorityVote().fit(labels)
    assert model.labels_.tolist() == ["c", "c"]
    assert model.ties_.tolist() == [False, True]
    assert model.confidence_.tolist() == [0.8, pytest.approx(1 / 3)]  # one worker


@pytest.mark.parametrize("method", [MajorityVote(), Wawa(), OneCoin(max_iter=5)])
def test_blocks_and_threads_do_not_change_a_bit(monkeypatch, method):
    labels = random_labels(n_tasks=2000, n_workers=20, n_classes=4)
    gold = {0: 1, 1500: 2}
    whole = method.fit(labels, gold=gold).probas_
    monkeypatch.setattr(engine, "SMALLEST_SHARD", 1000)
    before = get_threads()
    try:
        set_threads(1)
        one = method.fit(labels, gold=gold).probas_
        set_threads(3)
        three = method.fit(labels, gold=gold).probas_
    finally:
        set_threads(before)
    np.testing.assert_array_equal(one, three)
    np.testing.assert_allclose(one, whole, atol=1e-12)
