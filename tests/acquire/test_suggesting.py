from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.acquire.candidates import Pairs
from wisecrowd.acquire.rounds import Chosen, GoldQuestions, RoundState, split_gold
from wisecrowd.acquire.suggesting import AskingRules, arrival_order, next_queries
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning


@pytest.fixture(scope="module")
def crowd():
    made = wc.simulate.crowd(
        150, 15 * wc.simulate.OneCoinWorkers(8, 2), "per-task:3", n_classes=3, random_state=4
    )
    return made.labels, dict(zip(made.labels.tasks.tolist(), made.truth.tolist(), strict=True))


def timed(labels: wc.CrowdLabels, seed: int = 0) -> wc.CrowdLabels:
    columns = labels.to_dict()
    time = np.random.default_rng(seed).permutation(labels.n_annotations)
    return wc.CrowdLabels.from_arrays(
        *(columns[name] for name in ("task", "worker", "label")), timestamp=time
    )


def test_queries_are_new_pairs_with_the_most_uncertain_tasks(crowd):
    labels = timed(crowd[0])
    table, report = next_queries(labels, labels.tasks, 20, workers=labels.workers)
    asked = set(zip(table["task"].tolist(), table["worker"].tolist(), strict=True))
    known = set(zip(labels.tasks[labels.task], labels.workers[labels.worker], strict=True))
    assert len(asked) == 20
    assert not asked & known
    assert len(set(table["task"].tolist())) == 20
    assert (np.diff(table["score"]) <= 1e-12).all()
    assert report.reason is None
    assert report.answers == labels.n_annotations
    assert report.predictive_gain > 0


def test_new_tasks_come_first_and_row_order_does_not_matter(crowd):
    labels = timed(crowd[0])
    tasks = [*labels.tasks.tolist(), 900, 901]
    table, _ = next_queries(labels, tasks, 4)
    assert set(table["task"].tolist()[:2]) == {900, 901}
    assert table["worker"].tolist() == [None] * 4
    again, _ = next_queries(timed(labels), tasks[::-1], 4)
    assert set(again["task"].tolist()[:2]) == {900, 901}
    assert again["task"].tolist()[2:] == table["task"].tolist()[2:]


def test_limits_and_reasons(crowd):
    labels = timed(crowd[0])
    table, report = next_queries(labels, labels.tasks, 5, max_labels=3)
    assert (len(table["task"]), report.reason) == (0, "max_labels")
    table, report = next_queries(labels, labels.tasks, 5, budget=labels.n_annotations)
    assert (len(table["task"]), report.reason) == (0, "budget")
    table, report = next_queries(labels, labels.tasks, 5, budget=labels.n_annotations + 2)
    assert (len(table["task"]), report.reason) == (2, None)
    table, report = next_queries(labels, labels.tasks, 5, workers=[])
    assert (len(table["task"]), report.reason) == (0, "nothing left")
    table, report = next_queries(labels, labels.tasks, 5, stop=0.9)
    assert (len(table["task"]), report.reason) == (5, "flips")
    assert next_queries(labels, labels.tasks, 5, stop=0)[1].reason is None


def test_one_task_one_worker_one_class():
    labels = wc.CrowdLabels.from_arrays(["t"], ["ann"], ["x"])
    table, report = next_queries(labels, ["t"], 3, workers=["ann"])
    assert (len(table["task"]), report.reason) == (0, "nothing left")
    table, report = next_queries(labels, ["t"], 3, workers=["ann", "bob"])
    assert table["worker"].tolist() == ["bob"]


def test_a_target_needs_gold_and_stops(crowd):
    labels, truth = timed(crowd[0]), crowd[1]
    few = dict(list(truth.items())[:58])
    with pytest.raises(ParameterError, match="30 held-out gold"):
        next_queries(labels, labels.tasks, 5, gold=few, target=0.5)
    half = dict(list(truth.items())[:100])
    _, report = next_queries(labels, labels.tasks, 5, gold=half, target=0.4)
    assert report.reason == "target"
    assert 0.6 < report.gold_accuracy < 1
    table, report = next_queries(labels, labels.tasks, 60, gold=half, target=1.0)
    assert report.reason is None
    asked = set(table["task"].tolist())
    assert 0 < len(asked & set(half)) <= 50  # those held out look like any task


def test_answers_about_other_tasks(crowd):
    labels = crowd[0]
    with pytest.raises(DataError, match="not in the list of tasks"):
        next_queries(labels, labels.tasks[1:], 5)
    table, _ = next_queries(labels, labels.tasks[:100], 300, open_tasks=True)
    assert set(table["task"].tolist()) == set(labels.tasks[:100].tolist())


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"policy": "balenced"}, "did you mean 'balanced'"),
        ({"budget": -1}, "budget"),
        ({"min_labels": 3, "max_labels": 2}, "not below the minimum"),
        ({"gold_share": 1.5}, "gold_share"),
        ({"stop": -0.1}, "stop"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_rules(rules, words):
    with pytest.raises(ParameterError, match=words):
        AskingRules(**rules).check()


def test_empty_lists(crowd):
    with pytest.raises(ParameterError, match="empty"):
        next_queries(crowd[0], [], 5)
    with pytest.raises(DataError, match="Task 2 of the list is empty"):
        next_queries(crowd[0], ["a", ""], 5)


def test_answers_task_by_task_get_a_random_order(crowd):
    labels = crowd[0]
    order, real = arrival_order(labels, 0)
    assert not real
    assert sorted(order.tolist()) == list(range(labels.n_annotations))
    assert (order == arrival_order(labels, 0)[0]).all()
    with_times = timed(labels)
    order, real = arrival_order(with_times, 0)
    assert real
    assert (np.diff(with_times.columns["timestamp"][order]) > 0).all()


def test_a_classifier_is_the_task_prior(crowd):
    labels = timed(crowd[0])
    sure = np.full((150, 3), 1e-6)
    sure[np.arange(150), [crowd[1][task] for task in labels.tasks.tolist()]] = 1.0
    sure[[7, 90]] = 1 / 3  # the classifier knows nothing about these two
    order = np.random.default_rng(0).permutation(150)
    table, report = next_queries(
        labels, labels.tasks[order], 2, task_prior=sure[order], model="one-coin", stop=None
    )
    assert report.predictive_gain > 0
    assert set(table["task"].tolist()) == {labels.tasks[7], labels.tasks[90]}
    plain, _ = next_queries(labels, labels.tasks, 150, model="one-coin")
    known, _ = next_queries(labels, labels.tasks, 150, model="one-coin", task_prior=sure)
    assert known["score"].sum() < plain["score"].sum()
    with pytest.raises(DataError, match=r"give \(150, 3\)"):
        next_queries(labels, labels.tasks, 2, task_prior=sure[:10])


# ------------------------------------------------------------------------------------------ gold


def gold_state():
    """Six gold tasks, three of class 0, two of class 1 and one of class 2, then ordinary tasks."""
    labels = wc.CrowdLabels.from_arrays(
        [0, 0, 3, 6], ["a", "b", "b", "a"], [0, 0, 0, 1], tasks=range(12), workers=["a", "b", "c"],
        classes=range(3),
    )  # fmt: skip
    gold = np.full(12, -1, dtype=np.int32)
    gold[:6] = [0, 0, 0, 1, 1, 2]
    state = RoundState(
        labels, labels.labels_per_task, None, False, np.ones(3), 4, np.random.default_rng(0)
    )
    taken = np.sort(labels.task.astype(np.int64) * 3 + labels.worker)
    return state, GoldQuestions(gold, 0.05, taken, labels.labels_per_worker.astype(np.int64))


def queries(worker: list[int]) -> Chosen:
    n = len(worker)
    pairs = Pairs(np.arange(6, 6 + n), np.array(worker), np.full(n, -1))
    return Chosen(pairs, np.ones(n), ["uncertain"] * n)


def test_screening_balances_classes_and_repeats_nothing():
    state, questions = gold_state()
    found = questions.place(queries([2] * 6), state)
    assert found.reason[:5] == ["gold: screening"] * 5
    assert len(set(found.pairs.task[:5].tolist())) == 5
    # The largest deficit first: half of the gold is of class 0; then 1, 0, 2 or 1 ...
    classes = questions.gold[found.pairs.task[:5]].tolist()
    assert classes[:2] == [0, 0] or classes[0] == 0
    assert sorted(set(classes)) == [0, 1, 2]
    assert found.pairs.task[0] == 0  # the most decided by others


def test_known_pairs_are_not_asked_again():
    state, questions = gold_state()
    found = questions.place(queries([0, 0, 0]), state)  # worker a has two answers, one of them gold
    assert 0 not in found.pairs.task[:3].tolist()
    assert found.reason == ["gold: screening"] * 3


def test_exhausted_gold_warns_once():
    state, questions = gold_state()
    questions.gold[1:6] = -1
    with pytest.warns(WisecrowdWarning, match="every gold question") as seen:
        found = questions.place(queries([2, 2, 2]), state)
    assert len(seen) == 1
    assert found.reason == ["gold: screening", "uncertain", "uncertain"]


def test_ageing_follows_the_share():
    state, questions = gold_state()
    questions.n_before[:] = 50
    times = 0
    for seed in range(300):
        object.__setattr__(state, "rng", np.random.default_rng(seed))
        times += questions.place(queries([2]), state).reason == ["gold: ageing"]
    assert 5 <= times <= 30


def test_no_gold_without_a_share_or_a_worker():
    state, questions = gold_state()
    questions.share = 0.0
    assert questions.place(queries([2]), state).reason == ["uncertain"]
    questions.share = 1.0
    assert questions.place(queries([-1]), state).reason == ["uncertain"]


def test_gold_is_split_only_for_a_target():
    gold = np.array([0, 1, -1, 2, 0], dtype=np.int32)
    rng = np.random.default_rng(0)
    questions, scoring = split_gold(gold, None, rng)
    assert (questions == gold).all()
    assert (scoring == -1).all()
    questions, scoring = split_gold(gold, 0.9, rng)
    assert ((questions >= 0) ^ (scoring >= 0))[gold >= 0].all()
    assert (scoring >= 0).sum() == 2
