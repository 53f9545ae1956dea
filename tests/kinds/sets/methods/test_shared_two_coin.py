"""SharedTwoCoin: enumeration, two-coin Dawid-Skene, its own simulator, real data."""

from __future__ import annotations

import csv
from itertools import product

import numpy as np
import pytest
from scipy.special import psi

from wisecrowd import simulate
from wisecrowd.aggregation import BinaryRelevance, DawidSkene, SetVote, SharedTwoCoin
from wisecrowd.kinds.sets.checks import example as small_sets
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.methods.label_rules import LabelRules
from wisecrowd.kinds.sets.methods.set_mixture import SetMixture
from wisecrowd.kinds.sets.truth import SetPrior


def model_of(data, prior=None):
    return SetMixture(data, prior or SetPrior(), LabelRules.none(data.n_classes), 5.0)


def test_the_posterior_is_that_of_all_sets():
    """Sums over 2^K sets, with the likelihood of every annotation written out."""
    crowd = simulate.sets(6, 4, simulate.PerTask(3), classes=list("abcdef"))
    data, rng = crowd.data, np.random.default_rng(0)
    rates = rng.uniform(0.1, 0.9, (2, 4, 6))
    prototypes, weights = rng.uniform(0.1, 0.9, (3, 6)), np.array([0.5, 0.3, 0.2])
    found = model_of(data).posterior(np.log(rates), np.log1p(-rates), prototypes, weights)
    evidence = 0.0
    for i in range(data.n_tasks):
        mass, parts = 0.0, np.zeros(6)
        for z in product([0, 1], repeat=6):
            z = np.array(z)
            prior = weights @ np.where(z, prototypes, 1 - prototypes).prod(axis=1)
            for e in np.flatnonzero(data.task == i):
                y = np.isin(np.arange(6), data.members[data.pointer[e] : data.pointer[e + 1]])
                rate = np.where(z, rates[0, data.worker[e]], rates[1, data.worker[e]])
                prior *= np.where(y, rate, 1 - rate).prod()
            mass += prior
            parts += prior * z
        assert found.probas[i] == pytest.approx(parts / mass)
        evidence += np.log(mass)
    assert found.log_evidence == pytest.approx(evidence)


def two_coin(task, worker, label, prior, pooled, strength, n_iter):
    """Two-coin Dawid-Skene by variational Bayes, one label at a time."""
    votes = [label[task == i] for i in range(task.max() + 1)]
    q = np.array([one.mean() for one in votes])
    for _ in range(n_iter):
        logs = {}
        for j in range(worker.max() + 1):
            for z in (1, 0):
                own = worker == j
                p = (q if z else 1 - q)[task[own]]
                a = strength * pooled[1 - z] + (p * label[own]).sum()
                b = strength * (1 - pooled[1 - z]) + (p * (1 - label[own])).sum()
                logs[j, z] = psi(a) - psi(a + b), psi(b) - psi(a + b)
        odds = np.full(len(q), np.log(prior / (1 - prior)))
        for i, j, y in zip(task, worker, label, strict=True):
            odds[i] += logs[j, 1][1 - y] - logs[j, 0][1 - y]
        q = 1 / (1 + np.exp(-odds))
    return q


def test_one_class_is_two_coin_dawid_skene():
    crowd = simulate.sets(40, 5, simulate.PerTask(3), classes=["a"], purity=0.6)
    data = crowd.data
    prior = SetPrior(probas=np.full((40, 1), 0.4))
    run = model_of(data, prior).run(1, 500, 1e-12)
    expected = two_coin(
        data.task, data.worker, data.to_labels(0).label, 0.4, run.params.pooled[:, 0], 5.0, 300
    )
    assert run.probas[:, 0] == pytest.approx(expected, abs=1e-6)


def test_one_class_agrees_with_dawid_skene_on_good_labels():
    crowd = simulate.sets(80, 6, classes=["a"], purity=0.6, sensitivity=0.85)
    chosen = SharedTwoCoin().fit(crowd.data).members_[:, 0]
    expected = DawidSkene().fit(crowd.data.to_labels(0)).labels_ == "in"
    assert np.mean(chosen == expected) > 0.95


def test_a_known_prior_and_gold_are_used():
    data = small_sets(None)
    low = SharedTwoCoin().fit(data, task_prior=np.full(4, 0.05)).probas_.mean()
    high = SharedTwoCoin().fit(data, task_prior=np.full((40, 4), 0.6)).probas_.mean()
    assert low < high - 0.05
    fitted = SharedTwoCoin().fit(data, gold={data.tasks[3]: ["class-003"]})
    assert fitted.probas_[3].tolist() == [0, 0, 0, 1]


def test_it_recovers_the_rates_of_its_simulator():
    crowd = simulate.sets(600, 8, n_prototypes=6, classes=list("abcd"), random_state=1)
    fitted = SharedTwoCoin().fit(crowd.data)
    assert np.abs(fitted.sensitivity_ - crowd.sensitivity).mean() < 0.04
    assert np.abs(fitted.false_alarm_ - crowd.false_alarm).mean() < 0.04
    ticked = fitted.worker_sensitivity_, crowd.sensitivity.mean(axis=1)
    assert np.corrcoef(*ticked)[0, 1] > 0.95
    assert np.abs(fitted.prototypes_[0] - crowd.members.mean(axis=0)).max() < 0.06


def test_rare_classes_borrow_the_rates_of_others():
    """A class in a few sets only: its workers count as those of the other classes."""
    crowd = simulate.sets(400, 20, simulate.PerTask(3), random_state=3)
    data = crowd.data
    truth = dict(zip(data.tasks.tolist(), crowd.truth, strict=True))
    scores = [make().fit(data).score(data, truth) for make in (SetVote, SharedTwoCoin)]
    assert scores[1] > scores[0] + 0.01


def test_few_labels_shrink_workers_to_the_crowd():
    data = small_sets(None)
    weak, strong = (SharedTwoCoin(shrinkage=k).fit(data).sensitivity_ for k in (1.0, 200.0))
    assert strong.std(axis=0).max() < 0.2 * weak.std(axis=0).min()


@pytest.mark.data
def test_types_of_entities_of_real_sentences(data_directory):
    def types(text):
        return sorted({tag[2:] for tag in text.split() if tag != "O"})

    def rows(name):
        with (data_directory / "ner_mturk" / name).open(encoding="utf-8") as file:
            return list(csv.DictReader(file))

    given = [(row["task"], row["worker"], types(row["label"])) for row in rows("answers.csv")]
    data = CrowdSets.from_arrays(*zip(*given, strict=True))
    truth = {row["task"]: types(row["label"]) for row in rows("truth.csv")}
    assert SetVote().fit(data).score(data, truth) == pytest.approx(0.787, abs=0.002)
    assert SharedTwoCoin().fit(data).score(data, truth) >= 0.835
    assert BinaryRelevance().fit(data).score(data, truth) > 0.8
