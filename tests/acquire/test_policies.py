from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wisecrowd import CrowdLabels
from wisecrowd.acquire.candidates import LoggedPairs, OpenPairs, Pairs
from wisecrowd.acquire.policies import POLICIES, get_policy
from wisecrowd.acquire.rounds import COVER, POOR, RoundState, choose, worker_gate
from wisecrowd.acquire.shrunken_models import AveragePosterior, CrowdBelief
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.families.label_law import ConfusionLaw, OneCoinLaw

# Four tasks, three workers; task 3 has no label. The posteriors are given, not fitted.
TASK, WORKER, LABEL = [0, 0, 1, 2, 2], [0, 1, 0, 1, 2], [0, 1, 1, 0, 0]
Q = np.array([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1], [0.6, 0.4]])


def crowd() -> CrowdLabels:
    return CrowdLabels.from_arrays(
        TASK, WORKER, LABEL, tasks=range(4), workers=range(3), classes=[0, 1]
    )


def state(rng=0, trusted=True, accuracy=(0.9, 0.7, 0.8), cost=(1.0, 1.0, 1.0), **options):
    labels = crowd()
    law = OneCoinLaw(np.array([0.5, 0.5]), np.array(accuracy))
    belief = CrowdBelief("one-coin", Q, law, np.array([0, 1, 0, -1], np.int32))
    return RoundState(
        labels, labels.labels_per_task, belief, trusted, np.array(cost), 5,
        np.random.default_rng(rng), **options,
    )  # fmt: skip


def open_pairs(available=(0, 1, 2), room=9) -> OpenPairs:
    taken = np.sort(np.array(TASK) * 3 + np.array(WORKER)).astype(np.int64)
    workers = None if available is None else np.array(available, dtype=np.int64)
    return OpenPairs(4, 3, workers, taken, np.full(4, room))


@pytest.mark.parametrize("seed", range(5))
def test_uncertain_covers_then_takes_the_largest_entropy(seed):
    found = choose(get_policy("uncertain"), state(seed), open_pairs(), 3)
    # Task 3 has no label; then task 0 (entropy log 2), which only worker 2 has not answered; then
    # task 1: a round asks about task 3 only once. Entropies are .69, .50, .33, .67.
    assert found.pairs.task.tolist() == [3, 0, 1]
    assert found.pairs.worker.tolist()[1] == 2
    assert found.pairs.worker.tolist()[2] in (1, 2)
    assert found.reason[0] == COVER
    assert found.score[1] == pytest.approx(np.log(2))


def test_tasks_on_which_the_models_disagree_are_uncertain():
    given = state()
    assert given.belief is not None
    other = replace(given.belief, probas=np.array([[0.9, 0.1], [0.8, 0.2], [0.9, 0.1], [0.6, 0.4]]))
    averaged = replace(given, average=AveragePosterior((given.belief, other)))
    # Mean posteriors: .7, .5, .9, .6. One model alone is surest of task 0's tie.
    assert averaged.entropy.argmax() == 1
    assert averaged.entropy[1] == pytest.approx(np.log(2))
    found = choose(get_policy("uncertain"), averaged, open_pairs(), 2)
    assert found.pairs.task.tolist() == [3, 1]  # cover, then the disagreement
    margins = get_policy("margin").tasks(averaged)
    np.testing.assert_allclose(margins, [0.6, 1.0, 0.2, 0.8])


def test_a_second_pass_follows_when_every_task_was_asked():
    found = choose(get_policy("uncertain"), state(), open_pairs(), 20)
    keys = set(zip(found.pairs.task.tolist(), found.pairs.worker.tolist(), strict=True))
    assert len(keys) == len(found.pairs.task) == 12 - len(TASK)  # every pair that is left, once
    assert not keys & set(zip(TASK, WORKER, strict=True))


def test_balanced_while_the_fit_is_not_trusted():
    found = choose(get_policy("uncertain"), state(trusted=False), open_pairs(), 2)
    assert found.pairs.task.tolist() == [3, 1]  # no label, one label
    assert found.reason[1].startswith("balanced")


def test_costs_divide_the_score_and_choose_the_cheap_worker():
    found = choose(get_policy("uncertain"), state(cost=(5.0, 1.0, 4.0)), open_pairs(), 4)
    asked = dict(zip(found.pairs.task.tolist(), found.pairs.worker.tolist(), strict=True))
    # Of the pairs after the cover, task 1 with worker 1 (cost 1) beats task 0 with worker 2.
    assert asked[1] == 1
    assert found.score[list(found.pairs.task).index(0)] == pytest.approx(np.log(2) / 4)


def test_room_and_workers_limit_the_choice():
    pairs = open_pairs(available=(0,), room=1)
    found = choose(get_policy("balanced"), state(), pairs, 9)
    assert sorted(found.pairs.task.tolist()) == [2, 3]  # worker 0 has answered tasks 0 and 1
    assert pairs.nothing_left()
    assert open_pairs(available=()).nothing_left()
    assert not open_pairs().nothing_left()


def test_queries_without_workers_name_nobody():
    for name in POLICIES:
        found = choose(get_policy(name), state(), open_pairs(available=None), 4)
        assert set(found.pairs.worker.tolist()) == {-1}
        assert len(found.pairs.task) == 4


def test_capacity_of_workers():
    pairs = open_pairs()
    pairs.capacity = np.array([1, 0, 2])
    found = choose(get_policy("uncertain"), state(), pairs, 9)
    assert np.bincount(found.pairs.worker, minlength=3).tolist() == [1, 0, 2]


def test_best_worker_and_information():
    pairs = open_pairs()
    found = choose(get_policy("best-worker"), state(min_labels=0), pairs, 2)
    assert (found.pairs.task.tolist(), found.pairs.worker.tolist()) == ([0, 3], [2, 0])
    gain = get_policy("information").scores(
        state(), Pairs(np.array([0, 3]), np.array([2, 0]), np.array([-1, -1]))
    )
    noise = -(0.8 * np.log(0.8) + 0.2 * np.log(0.2))
    assert gain.rank[0] == pytest.approx(np.log(2) - noise)
    label = 0.6 * 0.9 + 0.4 * 0.1
    noise = -(0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    expected = -(label * np.log(label) + (1 - label) * np.log(1 - label)) - noise
    assert gain.rank[1] == pytest.approx(expected)


def test_margin_prefers_the_smallest_lead():
    found = choose(get_policy("margin"), state(min_labels=0), open_pairs(), 4)
    assert found.pairs.task.tolist() == [0, 3, 1, 2]


def test_bandit_explores_workers_with_few_judged_labels():
    value = get_policy("bandit").scores(
        state(), Pairs(np.array([3, 3, 3]), np.arange(3), np.full(3, -1))
    )
    gate = state().gate
    spread = np.sqrt(2 * np.log(5) / (1 + gate.judged))
    np.testing.assert_allclose(value.worker, gate.mean + spread)


def test_random_draws_pairs_of_a_log_evenly():
    labels = crowd()
    times = np.zeros(5)
    for seed in range(2000):
        pairs = LoggedPairs(labels.task, labels.worker, np.zeros(5, dtype=bool))
        found = choose(get_policy("random"), state(seed), pairs, 2)
        times[found.pairs.row] += 1
    assert np.abs(times / 2000 - 0.4).max() < 0.05


def test_epsilon_greedy_explores_half_at_first():
    policy = get_policy("epsilon-greedy")
    early = [{p.name: n for p, n in policy.parts(state(s), 40)} for s in range(50)]
    assert 18 < np.mean([one["random"] for one in early]) < 22
    late = state()
    object.__setattr__(late, "n_asked", 500)
    assert {p.name: n for p, n in policy.parts(late, 1000)}["random"] < 90


@pytest.mark.parametrize("name", POLICIES)
def test_same_seed_same_queries(name):
    first, second = (choose(get_policy(name), state(3), open_pairs(), 6) for _ in range(2))
    assert first.pairs.task.tolist() == second.pairs.task.tolist()
    assert first.pairs.worker.tolist() == second.pairs.worker.tolist()


def test_misspelt_policy_names_the_nearest():
    with pytest.raises(ParameterError, match="did you mean 'uncertain'"):
        get_policy("uncertian")


# ------------------------------------------------------------------------------------------ gate


def judged_crowd(n_repeated: int):
    """Four careful workers on 40 tasks of four classes, and one that repeats class 0."""
    truth = np.arange(40) % 4
    task = np.concatenate([np.repeat(np.arange(40), 4), np.arange(n_repeated)])
    worker = np.concatenate([np.tile(np.arange(4), 40), np.full(n_repeated, 4)])
    label = np.concatenate([np.repeat(truth, 4), np.zeros(n_repeated, int)])
    labels = CrowdLabels.from_arrays(task, worker, label, classes=range(4))
    q = np.full((40, 4), 0.01)
    q[np.arange(40), truth] = 0.97
    matrices = np.tile(np.full((4, 4), 0.05) + 0.8 * np.eye(4), (5, 1, 1))
    return labels, CrowdBelief("confusion", q, ConfusionLaw(np.full(4, 0.25), matrices),
                               truth.astype(np.int32))  # fmt: skip


def test_a_worker_who_repeats_one_class_is_gated_after_30_labels_not_after_2():
    gate = worker_gate(*judged_crowd(30))
    assert gate.poor.tolist() == [False] * 4 + [True]
    assert gate.factor[4] == POOR
    assert not worker_gate(*judged_crowd(2)).poor.any()


def test_gate_by_hand():
    labels, belief = crowd(), state().belief
    gate = worker_gate(labels, belief)
    # Worker 2 has one shared label, 0 on task 2: q = (.9, .1) without its own factor .8 / .2.
    q = np.array([0.9 / 0.8, 0.1 / 0.2])
    q /= q.sum()
    w = 1 + (q * np.log(q)).sum() / np.log(2)
    assert gate.judged[2] == pytest.approx(w)
    assert gate.mean[2] == pytest.approx((6 + w * q[0]) / (8 + w))
    m = gate.mean[2]
    assert gate.upper[2] == pytest.approx(m + 2 * np.sqrt(m * (1 - m) / (9 + w)))


def test_a_poor_worker_is_asked_last():
    labels, belief = judged_crowd(30)
    taken = np.sort(labels.task.astype(np.int64) * 5 + labels.worker)
    round_ = RoundState(
        labels, labels.labels_per_task, belief, True, np.ones(5), 190, np.random.default_rng(0)
    )
    pairs = OpenPairs(40, 5, np.arange(5), taken, np.full(40, 9))
    found = choose(get_policy("uncertain"), round_, pairs, 40)
    assert set(found.pairs.worker.tolist()) == {4}  # nobody else is left
    np.testing.assert_allclose(found.score, POOR * belief.entropy()[found.pairs.task])
