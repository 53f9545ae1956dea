from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.audit import prune
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.inference.label_support import Support
from wisecrowd.kinds.classes.audit.pruning import PruningEffect, effect_of_pruning


def small(**options):
    # Task 3 has labels by c and d only; d labelled more than c.
    task = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
    worker = ["a", "b", "c", "a", "b", "d", "a", "b", "d", "c", "d"]
    label = [0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 0]
    return CrowdLabels.from_arrays(task, worker, label, **options)


def test_labels_without_the_workers():
    labels = small(cost=np.arange(11.0), worker_kind={w: w.upper() for w in "abcd"})
    pruned = prune(labels, ["c"])
    assert pruned.labels.workers.tolist() == ["a", "b", "d"]
    assert pruned.labels.worker_kind.tolist() == ["A", "B", "D"]
    table, before = pruned.labels.to_dict(), labels.to_dict()
    keep = before["worker"] != "c"
    for name in before:
        assert table[name].tolist() == before[name][keep].tolist(), name
    assert pruned.removed.tolist() == ["c"]


def test_changes_are_those_of_the_methods():
    made = simulate.crowd(60, 5 * simulate.OneCoinWorkers(8, 2) + 5 * simulate.Spammers())
    pruned = prune(made.labels, np.arange(10) >= 5)
    for name, method in (("vote", MajorityVote), ("fit", DawidSkene)):
        before = method().fit(made.labels).labels_
        after = method().fit(pruned.labels).labels_
        assert pruned.changes[f"{name}_before"].tolist() == before.tolist()
        assert pruned.changes[f"{name}_after"].tolist() == after.tolist()
        assert pruned.summary()[f"{name}s_changed"] == int((before != after).sum())
    assert pruned.summary()["votes_changed"] > 0
    assert pruned.summary()["labels_removed"] == int(made.labels.labels_per_worker[5:].sum())


def test_refuses_to_leave_tasks_without_labels():
    with pytest.raises(DataError, match=r"1 tasks \(3\) would have no labels"):
        prune(small(), ["c", "d"])


def test_spares_the_busiest():
    pruned = prune(small(), ["c", "d"], unlabelled="spare")
    assert (pruned.removed.tolist(), pruned.spared.tolist()) == (["c"], ["d"])
    assert pruned.labels.n_tasks == 4


def test_drops_tasks_when_told():
    pruned = prune(small(), ["c", "d"], unlabelled="drop")
    assert pruned.labels.tasks.tolist() == [0, 1, 2]
    assert pruned.changes["vote_after"].tolist()[3] is None
    facts = pruned.summary()
    assert (facts["tasks_kept"], facts["tasks_lost"]) == (3, 1)


def test_keeps_at_least_two_workers():
    with pytest.raises(DataError, match="Only 1 of 4 workers"):
        prune(small(), ["b", "c", "d"], unlabelled="drop")


def test_nobody_to_prune_keeps_everything():
    labels = simulate.crowd(200, 6 * simulate.OneCoinWorkers(8, 2)).labels
    pruned = prune(labels)
    assert len(pruned.removed) == 0
    assert np.array_equal(pruned.labels.label, labels.label)
    assert set(pruned.summary().values()) == {0, 200}


@pytest.mark.parametrize(
    ("workers", "message"), [(["cc"], "did you mean 'c'"), (np.ones(3, dtype=bool), "mask")]
)
def test_unknown_workers(workers, message):
    with pytest.raises(ParameterError, match=message):
        prune(small(), workers)


def test_unknown_choice():
    with pytest.raises(ParameterError, match="unlabelled"):
        prune(small(), ["c"], unlabelled="ignore")


def test_the_effect_of_pruning_is_that_of_fits_without_the_workers():
    workers = 6 * simulate.OneCoinWorkers(8, 2) + 3 * simulate.Spammers()
    made = simulate.crowd(200, workers, simulate.PerTask(4))
    spammers = np.arange(9) >= 6
    effect = effect_of_pruning(made.labels, spammers)
    pruned = prune(made.labels, spammers, unlabelled="drop")
    assert effect.n_changed == pruned.summary()["fits_changed"] > 0
    assert effect.n_tasks == pruned.summary()["tasks_kept"]
    nobody = effect_of_pruning(made.labels, np.zeros(9, dtype=bool))
    assert nobody.n_changed == 0
    assert not nobody.helps


def test_pruning_the_good_workers_lowers_the_held_out_score():
    made = simulate.crowd(300, 6 * simulate.OneCoinWorkers(18, 2) + 4 * simulate.Spammers())
    effect = effect_of_pruning(made.labels, np.arange(10) < 5)
    assert effect.score_change < -effect.score_error < 0
    assert not effect.helps


@pytest.mark.parametrize(
    ("effect", "helps"),
    [
        (PruningEffect(3, 400, 0.01, 0.002), True),
        (PruningEffect(3, 400, 0.003, 0.002), False),
        (PruningEffect(3, 400, 0.01, 0.002, Support(9, 1, 3.0)), True),
        (PruningEffect(3, 400, 0.01, 0.002, Support(5, 4, 3.0)), False),
        (PruningEffect(3, 400, -0.01, 0.002), False),
        (PruningEffect(0, 400, 0.01, 0.002), False),
        (PruningEffect(3, 400, float("nan"), float("nan")), False),
    ],
)
def test_pruning_helps_if_labels_change_and_are_predicted_better(effect, helps):
    assert effect.helps == helps
    assert f"changes {effect.n_changed} of 400 labels" in str(effect)


@pytest.mark.parametrize(("n_known", "decides"), [(300, True), (5, False)])
def test_known_classes_score_the_remedy(n_known, decides):
    """Held-out labels follow tasks that mislead everybody; known classes do not."""
    made = simulate.crowd(
        300, 8 * simulate.OneCoinWorkers(8, 2) + 2 * simulate.Spammers(), random_state=1
    )
    removed = np.arange(10) >= 8
    gold = {task: int(made.truth[task]) for task in range(n_known)}
    effect = effect_of_pruning(made.labels, removed, gold)
    plain = effect_of_pruning(made.labels, removed)
    assert plain.known is None
    assert effect.known.n == n_known
    assert ("known classes" in str(effect)) == (decides or effect.known.worse)
    if decides:
        assert effect.helps == (effect.n_changed > 0 and effect.known.better)
    before = DawidSkene().fit(made.labels)
    right = np.mean(before.labels_[:n_known] == made.truth[:n_known])
    assert effect.known.before.accuracy == pytest.approx(right)
