from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import Auto, DawidSkene, HierarchicalDawidSkene, MajorityVote
from wisecrowd.audit import find_spammers, prune
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.classes.audit.spammers import (
    KNOWLEDGE,
    channel_capacity,
    mutual_information,
    spammer_score,
)

HONEST = simulate.OneCoinWorkers(8, 2)


def crowd(n_tasks, population, **options):
    return simulate.crowd(n_tasks, population, **{"n_classes": 4, "random_state": 0, **options})


def accused_of(labels, **options):
    report = find_spammers(labels, **options)
    return report.workers[report.accused].tolist()


@pytest.mark.parametrize("n_spammers", [0, 2, 10, 18])
def test_no_honest_worker_is_accused_and_few_spammers_are_missed(n_spammers):
    honest = (20 - n_spammers) * simulate.OneCoinWorkers(8, 2)
    population = honest + n_spammers * simulate.Spammers(1.0) if n_spammers else honest
    made = crowd(2000, population)
    found = accused_of(made.labels)
    spammers = set(range(20 - n_spammers, 20))
    assert set(found) <= spammers
    assert len(found) >= 0.9 * n_spammers


def test_constant_workers_are_spammers():
    made = crowd(600, 8 * HONEST + 2 * simulate.AlwaysOneClass(), n_classes=3)
    assert accused_of(made.labels) == [8, 9]


def test_one_worker_knows_and_two_know():
    said = []
    for n in (1, 2):
        made = crowd(600, 8 * HONEST + n * simulate.AlwaysOneClass(), n_classes=3)
        (found,) = find_spammers(made.labels).findings()
        said.append(found.explanation)
    assert said[0].startswith("1 worker (")
    assert ") knows nothing" in said[0]
    assert said[1].startswith("2 workers")
    assert ") know nothing" in said[1]


def test_a_few_labels_accuse_nobody():
    made = crowd(500, 8 * HONEST + 40 * simulate.Spammers(), assignment=simulate.Bernoulli(0.03))
    # Fifteen labels each: even a perfect worker could not be told from a random one.
    assert accused_of(made.labels) == []


def plain_levels(labels):
    """The formula of the score, label by label, and EM for the shares of the levels."""
    fit = HierarchicalDawidSkene().fit(labels)
    K = labels.n_classes
    rows = list(zip(labels.task.tolist(), labels.worker.tolist(), labels.label.tolist(),
                    strict=True))  # fmt: skip
    shares = [sum(y == k for _, _, y in rows) / len(rows) for k in range(K)]
    log_p = np.zeros((labels.n_workers, len(KNOWLEDGE)))
    for i, j, y in rows:
        if sum(task == i for task, _, _ in rows) < 2:
            continue
        others = [fit.probas_[i, k] / fit.confusion_[j, k, y] for k in range(K)]
        own = [label for _, worker, label in rows if worker == j]
        q = (sum(label == y for label in own) - 1 + shares[y]) / len(own)
        for n, level in enumerate(KNOWLEDGE):
            p = sum(others[k] * (level * (y == k) + (1 - level) * q) for k in range(K))
            log_p[j, n] += np.log(p / sum(others))
    weight = prior = np.array([2, *[18 / 7] * 7])
    for _ in range(300):
        joint = np.exp(log_p - log_p.max(axis=1, keepdims=True)) * weight / weight.sum()
        level = joint / joint.sum(axis=1, keepdims=True)
        weight = level.sum(axis=0) + prior
    return level


def test_levels_are_those_of_the_formula():
    labels = crowd(
        40, 6 * HONEST + 2 * simulate.Spammers(), assignment=simulate.PerTask(3), n_classes=3
    ).labels
    labels = labels.select_annotations(np.arange(labels.n_annotations) > 1)  # one task has one
    report = find_spammers(labels, pruning=False)
    level = plain_levels(labels)
    np.testing.assert_allclose(report.knowledge, level @ KNOWLEDGE, atol=1e-5)
    np.testing.assert_allclose(report.bad, level[:, :2].sum(axis=1), atol=1e-5)
    np.testing.assert_allclose(report.nothing, level[:, 0], atol=1e-5)


def test_times_are_evidence():
    labels = crowd(
        120, 12 * HONEST + 3 * simulate.Spammers(), assignment=simulate.PerTask(3), n_classes=2
    ).labels
    seconds = np.random.default_rng(1).lognormal(3, 0.3, labels.n_annotations)

    def timed(factor):
        fast = np.where(labels.worker >= 12, factor, 1.0)
        columns = (labels.tasks[labels.task], labels.workers[labels.worker], labels.label)
        return find_spammers(
            CrowdLabels.from_arrays(*columns, duration=seconds * fast), pruning=False
        )

    plain, fast, slow = find_spammers(labels, pruning=False), timed(0.1), timed(2.0)
    assert np.isnan(plain.time_z).all()
    assert (fast.time_z[12:] < -2).all()
    assert (fast.bad[12:] > plain.bad[12:]).all()
    assert (slow.bad[12:] < plain.bad[12:]).all()
    np.testing.assert_allclose(fast.knowledge, plain.knowledge)


def test_two_levels_with_a_controlled_rate():
    made = crowd(400, 20 * HONEST + 4 * simulate.Spammers(), assignment=simulate.PerTask(4))
    report = find_spammers(made.labels, pruning=False)
    assert set(np.flatnonzero(report.knows_nothing)) <= set(np.flatnonzero(report.spammer))
    assert (1 - report.bad[report.spammer]).mean() <= report.rate
    found = {finding.severity: finding for finding in report.findings()}
    assert set(found) <= {"high", "medium"}
    assert found["high"].affected
    assert "knows nothing" in found["high"].explanation
    nobody = find_spammers(made.labels, pruning=False, rate=0.0)
    assert not nobody.spammer[:20].any()


def test_extreme_spammer_in_a_sparse_crowd():
    made = crowd(
        400, 60 * HONEST + simulate.ExtremeSpammers(), assignment=simulate.Regular(9, 60),
        n_classes=2,
    )  # fmt: skip
    report = find_spammers(made.labels)
    assert report.workers[report.knows_nothing].tolist() == [60]
    first = report.findings()[0]
    assert (first.id, first.severity, first.affected) == ("spammers", "high", (60,))
    assert first.score == pytest.approx(400 / made.labels.n_annotations)


def test_spammers_whom_the_fit_ignores_need_not_be_pruned():
    made = crowd(400, 12 * simulate.OneCoinWorkers(18, 2) + 2 * simulate.Spammers(), n_classes=3)
    report = find_spammers(made.labels)
    assert report.workers[report.accused].tolist() == [12, 13]
    finding = report.findings()[0]
    assert not report._pruning.helps
    assert "Prune" not in finding.remedy
    assert str(report._pruning) in finding.remedy
    untested = find_spammers(made.labels, pruning=False)
    assert untested.findings()[0].remedy.startswith("Prune them")


def test_nobody_agrees_with_anybody():
    made = crowd(500, 10 * simulate.Spammers())
    report = find_spammers(made.labels)
    assert not report.accused.any()  # there is nobody to compare with
    assert [found.id for found in report.findings()] == ["no-signal"]


def test_adversary_is_no_spammer():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 800)
    labels = np.where(rng.random((800, 10)) < 0.8, truth[:, None], 1 - truth[:, None])
    labels[:, 9] = np.where(rng.random(800) < 0.1, truth, 1 - truth)
    labels[:, 8] = rng.integers(0, 2, 800)
    report = find_spammers(CrowdLabels.from_matrix(labels))
    assert report.spammer.tolist() == [False] * 8 + [True, False]
    assert report.contrary.tolist() == [False] * 9 + [True]


def test_renaming_classes_changes_nothing():
    labels = crowd(400, 8 * HONEST + 4 * simulate.Spammers()).labels
    turned = CrowdLabels(
        labels.task, labels.worker, ((labels.label + 1) % 4).astype(np.int32), labels.tasks,
        labels.workers, labels.classes,
    )  # fmt: skip
    one, other = find_spammers(labels), find_spammers(turned)
    assert one.accused.tolist() == other.accused.tolist()
    np.testing.assert_allclose(one.bad, other.bad, atol=1e-8)
    np.testing.assert_allclose(one.knowledge, other.knowledge, atol=1e-8)


def test_same_seed_same_report_and_table():
    labels = crowd(300, 8 * HONEST + 4 * simulate.Spammers()).labels
    fit = Auto().fit(labels)
    one, other = find_spammers(labels, fit=fit), find_spammers(labels)
    table = one.tables()["spammers"]
    assert list(table)[:2] == ["worker", "n_labels"]
    for name, values in other.tables()["spammers"].items():
        assert np.array_equal(table[name], values, equal_nan=values.dtype == float), name
    assert one.to_dict()["rate"] == one.rate


def test_what_cannot_be_audited():
    with pytest.raises(NotApplicable, match="no two workers share"):
        find_spammers(CrowdLabels.from_arrays([0, 1], ["a", "b"], [0, 1]))
    with pytest.raises(NotApplicable, match="one class"):
        find_spammers(CrowdLabels.from_matrix([[0, 0], [0, 0]]))
    with pytest.raises(ParameterError, match="rate"):
        find_spammers(crowd(50, 4 * HONEST).labels, rate=2)


# ------------------------------------------------------------------------------- real crowds


def test_bluebird_is_better_without_those_who_know_little(real_crowd):
    labels, truth = real_crowd("bluebird")
    pruned = prune(labels)
    assert len(pruned.removed) == 17
    before, after = MajorityVote().fit(labels), MajorityVote().fit(pruned.labels)
    assert before.score(labels, truth) == pytest.approx(0.759, abs=5e-4)
    assert after.score(pruned.labels, truth) == pytest.approx(0.824, abs=5e-4)
    assert DawidSkene().fit(pruned.labels).score(pruned.labels, truth) >= 0.888


@pytest.mark.parametrize(
    ("name", "volumes"), [("temp", [442, 452, 462]), ("rte", [540, 700, 760, 800])]
)
def test_extreme_spammers_by_volume(real_crowd, name, volumes):
    report = find_spammers(real_crowd(name)[0])
    assert set(volumes) <= set(report.n_labels[report.accused].tolist())


def entropy(p):
    p = np.asarray(p)[np.asarray(p) > 0]
    return float(-(p * np.log2(p)).sum())


def test_score_is_the_sum_over_pairs_of_rows():
    rng = np.random.default_rng(0)
    confusion = rng.dirichlet(np.ones(4), size=(5, 4))
    expected = [
        sum(((w[k] - w[m]) ** 2).sum() for k in range(4) for m in range(k)) / (4 * 3)
        for w in confusion
    ]
    np.testing.assert_allclose(spammer_score(confusion), expected)


def test_score_of_known_workers():
    swapped = np.eye(3)[[1, 2, 0]]
    constant = np.repeat([[0.2, 0.5, 0.3]], 3, axis=0)
    found = spammer_score(np.array([np.eye(3), swapped, constant]))
    np.testing.assert_allclose(found, [1, 1, 0], atol=1e-12)


def test_score_in_the_binary_case_is_youden_squared():
    sensitivity, specificity = 0.8, 0.7
    confusion = np.array([[[specificity, 1 - specificity], [1 - sensitivity, sensitivity]]])
    assert spammer_score(confusion)[0] == pytest.approx((sensitivity + specificity - 1) ** 2)


def test_mutual_information_is_a_difference_of_entropies():
    rng = np.random.default_rng(1)
    confusion, prior = rng.dirichlet(np.ones(3), size=(4, 3)), rng.dirichlet(np.ones(3))
    expected = [
        entropy(prior @ w) - prior @ np.array([entropy(row) for row in w]) for w in confusion
    ]
    np.testing.assert_allclose(mutual_information(confusion, prior), expected, atol=1e-12)


def test_capacity_in_closed_form():
    symmetric = np.array([[0.89, 0.11], [0.11, 0.89]])
    erased = np.array([[0.7, 0.0, 0.3], [0.0, 0.7, 0.3], [0.35, 0.35, 0.3]])  # third row is useless
    spammer = np.full((2, 2), 0.5)
    z_channel = np.array([[1.0, 0.0], [0.5, 0.5]])
    assert channel_capacity(symmetric[None])[0] == pytest.approx(1 - entropy([0.89, 0.11]))
    assert channel_capacity(erased[None])[0] == pytest.approx(0.7, abs=1e-6)
    assert channel_capacity(z_channel[None])[0] == pytest.approx(np.log2(5 / 4))
    assert channel_capacity(spammer[None])[0] == pytest.approx(0, abs=1e-12)


def test_capacity_is_the_largest_mutual_information():
    rng = np.random.default_rng(2)
    confusion = rng.dirichlet(np.ones(3), size=(3, 3))
    grid = [(a, b, 1 - a - b) for a in np.linspace(0, 1, 101) for b in np.linspace(0, 1 - a, 101)]
    best = np.max([mutual_information(confusion, np.array(p)) for p in grid], axis=0)
    found = channel_capacity(confusion)
    assert (found >= best - 1e-9).all()
    np.testing.assert_allclose(found, best, atol=1e-3)


def test_one_class_says_nothing():
    assert spammer_score(np.ones((2, 1, 1))).tolist() == [0, 0]
    assert channel_capacity(np.ones((2, 1, 1))).tolist() == [0, 0]
