"""KOS: the messages by hand, the sign, the published error rates."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.methods.kos import KOS
from wisecrowd.kinds.classes.methods.majority_vote import MajorityVote
from wisecrowd.kinds.classes.methods.one_vs_rest import OneVsRest
from wisecrowd.simulate import HammerSpammers, Regular, crowd

CLASSES = [0, 1]


def random_matrix(seed: int, n_tasks: int = 12, n_workers: int = 7) -> np.ndarray:
    """Return ±1 labels with zeros for missing ones, mostly right."""
    rng = np.random.default_rng(seed)
    truth = rng.choice([-1, 1], n_tasks)
    right = rng.random((n_tasks, n_workers)) < rng.uniform(0.7, 0.95, n_workers)
    seen = rng.random((n_tasks, n_workers)) < 0.7
    seen[:, 0] = True  # one connected crowd
    return np.where(seen, np.where(right, truth[:, None], -truth[:, None]), 0)


def as_labels(matrix: np.ndarray) -> CrowdLabels:
    task, worker = np.nonzero(matrix)
    return CrowdLabels.from_arrays(
        task, worker, (matrix[task, worker] > 0).astype(int), classes=CLASSES
    )


def messages_by_hand(matrix: np.ndarray, rounds: int) -> np.ndarray:
    """Return the votes of the paper's algorithm, one message at a time."""
    edges = list(zip(*np.nonzero(matrix), strict=True))
    message = dict.fromkeys(edges, 1.0)
    for _ in range(rounds):
        to_worker = {
            (i, j): sum(matrix[i, b] * message[i, b] for a, b in edges if a == i and b != j)
            for i, j in edges
        }
        message = {
            (i, j): sum(matrix[a, j] * to_worker[a, j] for a, b in edges if b == j and a != i)
            for i, j in edges
        }
        top = max(abs(x) for x in message.values())
        message = {edge: x / top for edge, x in message.items()}
    return np.array([sum(matrix[i, j] * message[a, j] for a, j in edges if a == i)
                     for i in range(len(matrix))])  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rounds", [1, 3, 10])
def test_votes_are_those_of_messages_passed_one_by_one(seed, rounds):
    matrix = random_matrix(seed)
    model = KOS(max_iter=rounds, tol=0.0).fit(as_labels(matrix))
    log_odds = np.log(model.probas_[:, 1] / model.probas_[:, 0])
    expected = messages_by_hand(matrix, rounds)
    if expected @ matrix.sum(axis=1) < 0:
        expected = -expected
    scale = (log_odds @ expected) / (expected @ expected)
    assert scale > 0
    np.testing.assert_allclose(log_odds, scale * expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_svd_variant_is_the_leading_singular_vector_of_the_centred_matrix(seed):
    matrix = random_matrix(seed).astype(float)
    model = KOS(variant="svd", max_iter=20_000, tol=1e-14).fit(as_labels(matrix))
    left, _, right = np.linalg.svd(matrix - matrix.mean(axis=0))
    left, right = left[:, 0], right[0]
    turn = np.sign(right @ model.vote_weight_)
    np.testing.assert_allclose(
        model.vote_weight_ / np.linalg.norm(model.vote_weight_), turn * right, atol=1e-6
    )
    log_odds = np.log(model.probas_[:, 1] / model.probas_[:, 0])
    np.testing.assert_allclose(log_odds / np.linalg.norm(log_odds), turn * left, atol=1e-6)


@pytest.mark.parametrize("variant", ["messages", "svd"])
@pytest.mark.parametrize("start", ["ones", "normal"])
def test_swapping_the_classes_swaps_the_result(variant, start):
    matrix = random_matrix(3, 30)
    first = KOS(variant=variant, start=start).fit(as_labels(matrix))
    second = KOS(variant=variant, start=start).fit(as_labels(-matrix))
    np.testing.assert_allclose(first.probas_, second.probas_[:, ::-1], atol=1e-6)


def test_a_start_with_the_wrong_sign_does_not_turn_the_result():
    matrix = random_matrix(1, 30)
    model = KOS().fit(as_labels(matrix))
    turned = KOS().fit(as_labels(matrix), init=model.probas_[:, ::-1])
    np.testing.assert_array_equal(model.labels_, turned.labels_)


def test_beats_the_vote_on_regular_hammer_spammer_crowds():
    ours, vote = [], []
    for seed in range(5):
        made = crowd(600, 600 * HammerSpammers(0.4), Regular(7, 7), random_state=seed)
        ours.append(np.mean(KOS().fit(made.labels).labels_ == made.truth))
        vote.append(np.mean(MajorityVote().fit(made.labels).labels_ == made.truth))
    assert np.mean(ours) > np.mean(vote) + 0.01


def test_probabilities_are_calibrated_on_its_own_model():
    made = crowd(4000, 800 * HammerSpammers(0.5), Regular(5, 25), random_state=2)
    model = KOS().fit(made.labels)
    right = model.labels_ == made.truth
    assert abs(model.confidence_.mean() - right.mean()) < 0.03


def test_parts_of_a_crowd_that_share_nothing_do_not_silence_each_other():
    large, small = random_matrix(0, 60, 9), random_matrix(5, 8, 4)
    both = np.zeros((68, 13), dtype=int)
    both[:60, :9], both[60:, 9:] = large, small
    alone = KOS().fit(as_labels(small))
    together = KOS().fit(as_labels(both))
    np.testing.assert_array_equal(together.labels_[60:], alone.labels_)
    assert together.confidence_[60:].min() > 0.5


def test_gold_is_a_worker_who_is_right():
    rng = np.random.default_rng(0)
    truth = rng.choice([-1, 1], 60)
    matrix = np.column_stack([truth] + [rng.choice([-1, 1], 60) for _ in range(4)])
    known = dict(zip(range(30), (truth[:30] > 0).astype(int).tolist(), strict=True))
    model = KOS().fit(as_labels(matrix), gold=known)
    assert model.vote_weight_.argmax() == 0
    assert np.mean(model.labels_[30:] == (truth[30:] > 0)) > 0.9


def test_more_than_two_classes_are_refused_with_a_way_out():
    labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [2, 2, 2], [2, 2, 1], [0, 0, 0]])
    with pytest.raises(DataError, match=r"OneVsRest\(KOS\(\)\)"):
        KOS().fit(labels)
    assert OneVsRest(KOS()).fit(labels).labels_.tolist() == [0, 1, 2, 2, 0]


@pytest.mark.parametrize("options", [{"variant": "x"}, {"start": 3}])
def test_bad_parameters(options):
    with pytest.raises(ParameterError):
        KOS(**options).fit(as_labels(random_matrix(0)))


def test_new_tasks_with_the_svd_variant():
    labels = as_labels(random_matrix(2, 40))
    model = KOS(variant="svd").fit(labels)
    np.testing.assert_allclose(model.predict_proba(labels), model.probas_, atol=1e-12)
    assert not KOS().tags().inductive
    assert KOS().set_params(variant="svd").tags().inductive


# ---------------------------------------------------------------------------------------- real data


@pytest.mark.parametrize(
    ("name", "variant", "error"),
    [
        ("bluebird", "svd", 0.1111),
        ("rte", "svd", 0.3975),
        ("bluebird", "messages", 0.2778),
        ("sentiment_polarity", "messages", 0.181),
        ("sp_amt", "messages", 0.058),
    ],
)
def test_published_error_rates(real_crowd, name, variant, error):
    labels, truth = real_crowd(name)
    model = KOS(variant=variant).fit(labels)
    found = dict(zip(model.tasks_.tolist(), model.labels_.tolist(), strict=True))
    wrong = np.mean([found[task] != label for task, label in truth.items()])
    assert wrong == pytest.approx(error, abs=1e-3)
