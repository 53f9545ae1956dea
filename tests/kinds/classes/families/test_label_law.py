from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import GLAD, MajorityVote, OneCoin
from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.classes.families import label_law
from wisecrowd.kinds.classes.families.label_law import (
    AbilityLaw,
    ConfusionLaw,
    CumulativeTable,
    OneCoinLaw,
)


@settings(max_examples=60, deadline=None)
@given(n_classes=st.integers(1, 40), seed=st.integers(0, 999))
def test_search_finds_the_label_that_a_plain_scan_finds(n_classes, seed):
    rng = np.random.default_rng(seed)
    rows = rng.random((5, n_classes)) * (rng.random((5, n_classes)) < 0.5)
    rows[:, rng.integers(n_classes)] += 0.1
    row, uniform = rng.integers(5, size=200), rng.random(200)
    found = CumulativeTable(rows).search(row, uniform)
    cumulative = np.cumsum(rows, axis=1) / rows.sum(axis=1, keepdims=True)
    plain = [np.flatnonzero(u < cumulative[r])[0] for r, u in zip(row, uniform, strict=True)]
    # The scan's own last sum may round below one, where the two may differ by the last label.
    np.testing.assert_array_equal(found, plain)


def test_labels_of_probability_zero_are_never_drawn():
    table = CumulativeTable(np.array([[0.0, 0.1, 0.0, 0.7, 0.2, 0.0, 0.0]]))
    edges = np.array([0.0, np.nextafter(1.0, 0.0), 0.1, np.nextafter(0.1, 0.0)])
    assert table.search(np.zeros(4, dtype=np.int64), edges).tolist() == [1, 4, 3, 1]


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_frequencies_match_the_confusion_rows(n_classes):
    rng = np.random.default_rng(7)
    confusion = rng.dirichlet(np.arange(1, n_classes + 1), size=(3, n_classes))
    truth = rng.integers(n_classes, size=6000).astype(np.int32)
    task = np.repeat(np.arange(6000, dtype=np.int32), 3)
    worker = np.tile(np.arange(3, dtype=np.int32), 6000)
    law = ConfusionLaw(np.full(n_classes, 1 / n_classes), confusion)
    label = law.draw(truth[task], worker, task, rng)
    for j in range(3):
        for k in range(n_classes):
            said = label[(worker == j) & (truth[task] == k)]
            counts = np.bincount(said, minlength=n_classes)
            expected = confusion[j, k] * said.size
            assert scipy.stats.chisquare(counts, expected).pvalue > 1e-4


def test_the_size_of_the_blocks_does_not_show(monkeypatch):
    confusion = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 3))
    truth = np.arange(50, dtype=np.int32) % 3
    task = np.repeat(np.arange(50, dtype=np.int32), 4)
    worker = np.tile(np.arange(4, dtype=np.int32), 50)
    law = ConfusionLaw(np.full(3, 1 / 3), confusion)
    whole = law.draw(truth[task], worker, task, np.random.default_rng(5))
    monkeypatch.setattr(label_law, "BLOCK", 7)
    again = law.draw(truth[task], worker, task, np.random.default_rng(5))
    np.testing.assert_array_equal(again, whole)


def test_one_coin_law_is_that_of_its_matrices():
    rng = np.random.default_rng(0)
    coin = OneCoinLaw(rng.dirichlet(np.ones(4)), rng.random(5))
    table = ConfusionLaw(coin.class_prior, coin.confusion(np.arange(5)))
    belief, worker = rng.dirichlet(np.ones(4), 30), rng.integers(5, size=30)
    np.testing.assert_allclose(coin.probas(belief, worker), table.probas(belief, worker))
    np.testing.assert_allclose(coin.probas(belief, 3), table.probas(belief, 3))
    label, truth = rng.integers(4, size=(2, 30))
    np.testing.assert_array_equal(
        coin.log_prob(label, truth, worker), table.log_prob(label, truth, worker)
    )


@pytest.mark.parametrize("n_classes", [1, 2, 7])
def test_one_coin_labels_are_those_that_its_matrices_give(n_classes):
    rng = np.random.default_rng(1)
    coin = OneCoinLaw(np.full(n_classes, 1 / n_classes), rng.random(5))
    table = ConfusionLaw(coin.class_prior, coin.confusion(np.arange(5)))
    truth, worker = rng.integers(n_classes, size=5000), rng.integers(5, size=5000)
    drawn = coin.draw(truth, worker, worker, np.random.default_rng(2))
    same = table.draw(truth, worker, worker, np.random.default_rng(2))
    np.testing.assert_array_equal(drawn, same)


@pytest.mark.parametrize("accuracy", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("n_classes", [1, 2, 5])
def test_one_coin_labels_have_their_probabilities(n_classes, accuracy):
    law = OneCoinLaw(np.full(n_classes, 1 / n_classes), np.array([accuracy]))
    zeros = np.zeros(8000, dtype=np.int32)
    for k in range(n_classes):
        drawn = law.draw(zeros + k, zeros, zeros, np.random.default_rng(k))
        share = np.bincount(drawn, minlength=n_classes) / 8000
        np.testing.assert_allclose(share, law.confusion(0)[k], atol=0.025)
        assert (share[law.confusion(0)[k] == 0] == 0).all()


def test_glad_labels_depend_on_the_task():
    labels = simulate.crowd(80, 6 * simulate.GLADWorkers(), n_classes=3).labels
    fit = GLAD().fit(labels)
    law = fit.label_law()
    assert isinstance(law, AbilityLaw)
    odds = fit.ability_[2] / fit.difficulty_
    right = law.prob(1, 1, 2, np.arange(80))
    np.testing.assert_allclose(right, 1 / (1 + np.exp(-odds)))
    np.testing.assert_allclose(law.prob(0, 1, 2, np.arange(80)), (1 - right) / 2)
    # A new task is the average of many tasks whose easiness is drawn from the prior.
    easiness = np.exp(np.random.default_rng(0).normal(1, 1, 200_000))
    many = 1 / (1 + np.exp(-fit.ability_[2] * easiness))
    assert law.prob(1, 1, 2) == pytest.approx(many.mean(), abs=0.003)


def test_many_classes_need_no_matrices():
    names = [f"c{n:04}" for n in range(4000)]
    task, worker = np.arange(40) // 4, np.arange(40) % 4
    said = [names[(i * 37 + (j == 3)) % 4000] for i, j in zip(task, worker, strict=True)]
    fit = OneCoin().fit(CrowdLabels.from_arrays(task, worker, said, classes=names))
    law = fit.label_law()
    assert isinstance(law, OneCoinLaw)
    np.testing.assert_array_equal(law.prob(7, 7, np.arange(4)), fit.accuracy_)


def test_votes_have_no_law():
    vote = MajorityVote().fit(CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0]]))
    with pytest.raises(DataError, match=r"MajorityVote has no label law.*dawid-skene"):
        vote.label_law()
