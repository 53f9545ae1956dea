from __future__ import annotations

from math import lgamma

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import DawidSkene, SpammerElimination
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.methods.spammer_elimination import dirichlet_evidence


def test_evidence_is_that_of_labels_one_after_the_other():
    rng = np.random.default_rng(0)
    alpha = rng.uniform(0.2, 3, (1, 2, 3))
    sequences = [[0, 2, 2, 1], [1, 1, 0]]
    expected, counts = 0.0, np.zeros((1, 2, 3))
    for k, sequence in enumerate(sequences):
        for label in sequence:
            seen = alpha[0, k] + counts[0, k]
            expected += np.log(seen[label] / seen.sum())
            counts[0, k, label] += 1
    assert dirichlet_evidence(counts, alpha)[0] == pytest.approx(expected)


def test_evidence_without_prior_is_uniform():
    counts = np.array([[[2.0, 1.0]]])
    found = dirichlet_evidence(counts, np.zeros((1, 1, 2)))[0]
    assert found == pytest.approx(lgamma(2) - lgamma(5) + lgamma(3) + lgamma(2))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_finds_the_spammers(n_classes):
    made = simulate.crowd(
        1000, 10 * simulate.OneCoinWorkers(8, 2) + 10 * simulate.Spammers(2.0),
        n_classes=n_classes, random_state=3,
    )  # fmt: skip
    model = SpammerElimination().fit(made.labels)
    assert not model.spammer_[:10].any()
    assert model.spammer_[10:].sum() >= 9
    rows = model.confusion_[model.spammer_]
    np.testing.assert_allclose(rows, np.broadcast_to(rows[:, :1], rows.shape))


def test_eliminated_labels_weigh_nothing():
    made = simulate.crowd(
        800, 6 * simulate.OneCoinWorkers(8, 2) + 3 * simulate.Spammers(), random_state=2
    )
    model = SpammerElimination(tol=1e-12, max_iter=300).fit(made.labels)
    assert model.spammer_[6:].sum() >= 2
    assert not model.spammer_[:6].any()
    rest = made.labels.select_annotations(~model.spammer_[made.labels.worker])
    alone = DawidSkene(tol=1e-12, max_iter=300).fit(rest)
    labelled = rest.labels_per_task > 0
    np.testing.assert_allclose(model.probas_[labelled], alone.probas_[labelled], atol=1e-4)


def test_without_spammers_it_is_dawid_skene():
    made = simulate.crowd(400, 6 * simulate.OneCoinWorkers(16, 4), n_classes=3, random_state=0)
    model = SpammerElimination(tol=1e-12, max_iter=300).fit(made.labels)
    plain = DawidSkene(tol=1e-12, max_iter=300, accelerate=False).fit(made.labels)
    assert not model.spammer_.any()
    np.testing.assert_allclose(model.confusion_, plain.confusion_, atol=1e-9)


def test_more_evidence_is_asked_for():
    made = simulate.crowd(
        600, 5 * simulate.OneCoinWorkers(8, 2) + 2 * simulate.Spammers(), random_state=5
    )
    model = SpammerElimination().fit(made.labels)
    assert model.spammer_.any()
    assert np.array_equal(model.spammer_, model.spammer_evidence_ > np.log(3.0))
    assert not SpammerElimination(evidence=1e9).fit(made.labels).spammer_.any()


def test_a_worker_with_few_labels_is_not_judged():
    task = np.repeat(np.arange(30), 5)
    worker = np.tile(np.arange(5), 30)
    label = np.repeat(np.arange(30) % 2, 5)
    label[4] = 1 - label[4]
    keep = (worker < 4) | (task == 0)  # the fifth worker gave one label, a wrong one
    labels = CrowdLabels.from_arrays(task[keep], worker[keep], label[keep])
    assert not SpammerElimination().fit(labels).spammer_.any()


def test_parameter():
    with pytest.raises(ParameterError, match="evidence"):
        SpammerElimination(evidence=0.5).fit(CrowdLabels.from_matrix([[0, 1]]))


def test_workers_who_share_no_task_are_not_eliminated():
    given = np.random.default_rng(0).choice(4, 60, p=[0.7, 0.1, 0.1, 0.1])
    labels = CrowdLabels.from_arrays(np.arange(60), np.arange(60) % 5, given)
    model = SpammerElimination().fit(labels)
    assert not model.spammer_.any()
    np.testing.assert_array_equal(model.labels_, given)
