"""PreferenceNet: exact cases, recovery of its own simulator, losses, ties, files."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import nn

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, FindingWarning, ParameterError
from wisecrowd.inference.monitor import reporting
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.learning import PreferenceNet
from wisecrowd.learning.pairs.preference_net import PairData
from wisecrowd.testing.learners import items_and_votes


def votes_of(X, w, eta, n_votes, seed=0):
    """Return votes on random pairs of items by workers with reliabilities."""
    rng = np.random.default_rng(seed)
    left = rng.integers(0, len(X), n_votes)
    right = (left + rng.integers(1, len(X), n_votes)) % len(X)
    worker = rng.integers(0, len(eta), n_votes)
    margin = (X[left] - X[right]) @ w
    won = rng.random(n_votes) < 1 / (1 + np.exp(-margin))
    won ^= rng.random(n_votes) > eta[worker]
    return CrowdPairs.from_arrays(
        None, worker, left, right, np.where(won, 0, 1), items=range(len(X))
    )


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(1)
    X, w = rng.normal(size=(150, 5)), np.array([2.0, -1.0, 0.5, 0.0, 1.0])
    eta = np.array([0.95, 0.9, 0.85, 0.95, 0.5, 0.1])
    return X, w, eta, votes_of(X, w, eta, 3000)


def weights(fit):
    layer = fit._network.module[1].weight[0].detach().numpy() * float(fit._network.scale)
    return layer * fit._network.module[0].scale.numpy()


def test_it_recovers_weights_and_reliabilities(crowd):
    X, w, eta, votes = crowd
    fit = PreferenceNet(weight_decay=0.0).fit(X, votes, items=range(len(X)))
    assert np.abs(fit.reliability_ - eta).max() < 0.08
    found = weights(fit)
    assert found @ w / np.linalg.norm(found) / np.linalg.norm(w) > 0.99
    assert 0.7 < np.linalg.norm(found) / np.linalg.norm(w) < 1.4
    agreement = fit.worker_accuracy_
    assert agreement[5] < 0.35
    assert (agreement[:4] > 0.65).all()


@pytest.mark.parametrize("loss", ["per-worker", "plain"])
def test_it_reaches_the_optimum_of_its_objective(crowd, loss):
    """Mini-batches end close to what L-BFGS finds for the same likelihood and prior."""
    X, _, _, votes = crowd
    scale = X.std(axis=0)
    D = ((X - X.mean(axis=0)) / scale)[votes.left] - ((X - X.mean(axis=0)) / scale)[votes.right]
    sign, n = np.where(votes.outcome == 0, 1.0, -1.0), votes.n_workers

    def objective(flat):
        h = sign * (D @ flat[:5])
        if loss == "plain":
            return np.logaddexp(0, -h).sum()
        eta = 1 / (1 + np.exp(-flat[5:]))
        p, e = 1 / (1 + np.exp(-h)), eta[votes.worker]
        return -np.log(e * p + (1 - e) * (1 - p)).sum() - np.log(eta * (1 - eta)).sum()

    start = np.concatenate([np.zeros(5), np.full(n if loss == "per-worker" else 0, 2.2)])
    best = minimize(objective, start, method="L-BFGS-B")
    exact = {"weight_decay": 0.0, "batch_size": 3000, "epochs": 800, "lr": 0.2, "crowd_lr": 0.2}
    fit = PreferenceNet(loss=loss, **exact).fit(X, votes, items=range(len(X)))
    np.testing.assert_allclose(weights(fit) * scale, best.x[:5], atol=0.01)
    if loss == "per-worker":
        np.testing.assert_allclose(fit.reliability_, 1 / (1 + np.exp(-best.x[5:])), atol=0.005)


def test_reliabilities_are_frozen_in_the_first_epoch(crowd):
    X, _, _, votes = crowd
    fit = PreferenceNet(epochs=1).fit(X, votes, items=range(len(X)))
    np.testing.assert_allclose(fit.reliability_, 0.9, atol=1e-6)
    later = PreferenceNet(epochs=2).fit(X, votes, items=range(len(X)))
    assert np.ptp(later.reliability_) > 0.01


def test_swapping_sides_changes_nothing(crowd):
    X, _, _, votes = crowd
    one, two = (
        PreferenceNet(epochs=3).fit(X, data, items=range(len(X)))
        for data in (votes, votes.mirrored())
    )
    np.testing.assert_allclose(one.scores_, two.scores_, atol=1e-4)


def test_turning_the_votes_of_a_worker_mirrors_the_reliability(crowd):
    X, _, _, votes = crowd
    mine = votes.worker == 2
    turned = np.where(mine, 1 - votes.outcome, votes.outcome)
    other = CrowdPairs.from_arrays(
        None, votes.worker, votes.left, votes.right, turned, items=range(len(X))
    )
    options = {"epochs": 60, "batch_size": 500, "lr": 0.03, "crowd_lr": 0.3}
    one, two = (
        PreferenceNet(**options).fit(X, data, items=range(len(X))) for data in (votes, other)
    )
    assert two.reliability_[2] == pytest.approx(1 - one.reliability_[2], abs=0.03)
    assert np.corrcoef(one.scores_, two.scores_)[0, 1] > 0.9995
    assert one.scores_.std() / two.scores_.std() == pytest.approx(1, abs=0.15)


def test_a_tie_counts_half_for_each_side():
    X = np.array([[1.0], [0.0]])
    votes = CrowdPairs.from_arrays(None, None, [0, 0, 0], [1, 1, 1], ["tie"] * 3)
    fit = PreferenceNet(epochs=20, loss="plain").fit(X, votes)
    assert abs(fit.scores_[0] - fit.scores_[1]) < 0.1
    both = CrowdPairs.from_arrays(None, None, [0] * 6, [1] * 6, ["left", "right"] * 3)
    same = PreferenceNet(epochs=20, loss="plain", batch_size=6).fit(X, both)
    half = PreferenceNet(epochs=20, loss="plain", batch_size=6).fit(X, votes)
    np.testing.assert_allclose(same.scores_, half.scores_, atol=1e-3)


def test_any_module_is_a_reward_and_images_are_features():
    X, votes = items_and_votes()
    images = X.reshape(len(X), 1, 1, -1)
    module = nn.Sequential(nn.Flatten(), nn.Linear(X.shape[1], 4), nn.Tanh(), nn.Linear(4, 1))
    fit = PreferenceNet(module=module, epochs=3).fit(images, votes)
    assert fit.predict(images).shape == (len(X),)
    with pytest.raises(ParameterError, match="one output, the reward"):
        PreferenceNet(module=nn.Flatten(), epochs=1).fit(images, votes)


def test_the_network_runs_once_per_item_of_a_batch():
    X, votes = items_and_votes()
    batch = PairData(X, votes).batch(torch.arange(100))
    assert len(batch.x) == len(np.unique([votes.left[:100], votes.right[:100]]))
    np.testing.assert_allclose(
        batch.x[batch.left].numpy(), X[votes.left[:100]], rtol=1e-6
    )  # fmt: skip


def test_mirrored_starts_are_turned_around(crowd):
    """A module that starts in the wrong direction ends in the right one, with a finding."""
    X, w, _, _ = crowd
    votes = votes_of(X, w, np.full(6, 0.97), 1500)
    module = nn.Linear(5, 1)
    with torch.no_grad():
        module.weight.copy_(torch.tensor(-3.0 * w, dtype=torch.float32)[None])
    options = {"module": module, "epochs": 30, "lr": 1e-9, "crowd_lr": 0.3}
    with pytest.warns(FindingWarning, match="mirrored"):
        fit = PreferenceNet(**options).fit(X, votes, items=range(len(X)))
    assert [finding.id for finding in fit.findings_] == ["mirrored-reward"]
    assert np.corrcoef(fit.scores_, X @ w)[0, 1] > 0.99
    assert fit.reliability_.mean() > 0.5
    np.testing.assert_allclose(fit.predict(X), fit.scores_, atol=1e-5)


def test_epochs_are_selected_by_held_out_votes(crowd):
    X, _, _, votes = crowd
    fit = PreferenceNet(selection="crowd", epochs=8).fit(X, votes, items=range(len(X)))
    assert fit.selection_ == "crowd"
    assert {"epoch", "loss", "score"} == set(fit.history_[0])
    assert fit.history_[-1]["score"] > np.log(0.5)


def test_an_interrupted_training_resumes_with_the_same_bits(crowd, tmp_path):
    X, _, _, votes = crowd
    whole = PreferenceNet(epochs=6).fit(X, votes, items=range(len(X)))
    part = PreferenceNet(epochs=6, checkpoint=str(tmp_path / "c"))

    def interrupt(progress):
        if progress.iteration == 3:
            raise KeyboardInterrupt

    with reporting(interrupt), pytest.warns(FindingWarning, match="interrupted"):
        stopped = part.fit(X, votes, items=range(len(X)))
    assert not stopped.converged_
    resumed = PreferenceNet(epochs=6, checkpoint=str(tmp_path / "c"))
    resumed.fit(X, votes, items=range(len(X)), resume=True)
    assert np.array_equal(resumed.scores_, whole.scores_)
    assert np.array_equal(resumed.reliability_, whole.reliability_)


def test_score_is_the_likelihood_of_votes_or_kendalls_tau(crowd):
    X, w, _, votes = crowd
    fit = PreferenceNet().fit(X, votes, items=range(len(X)))
    margin = fit.scores_[votes.left] - fit.scores_[votes.right]
    eta = fit.reliability_[votes.worker]
    p = eta / (1 + np.exp(-margin)) + (1 - eta) / (1 + np.exp(margin))
    p = np.where(votes.outcome == 0, p, 1 - p)
    assert fit.score(X, votes, items=range(len(X))) == pytest.approx(np.log(p).mean(), rel=1e-6)
    assert fit.score(X, X @ w) > 0.9
    pairs = fit.predict_pairs(X[:3], X[3:6])
    np.testing.assert_allclose(pairs, 1 / (1 + np.exp(fit.scores_[3:6] - fit.scores_[:3])), 1e-5)


def test_items_go_by_their_ids():
    X, votes = items_and_votes()
    order = np.random.default_rng(0).permutation(len(X))
    plain = PreferenceNet(epochs=2).fit(X, votes)
    ids = [f"item {a}" for a in order]
    named = CrowdPairs.from_arrays(
        None, votes.worker, np.array([f"item {a}" for a in votes.left], dtype=object),
        np.array([f"item {a}" for a in votes.right], dtype=object), votes.outcome,
    )  # fmt: skip
    moved = PreferenceNet(epochs=2).fit(X[order], named, items=ids)
    assert moved.items_.tolist() == ids
    np.testing.assert_allclose(moved.predict(X), moved.scores_[np.argsort(order)], atol=1e-5)
    assert np.corrcoef(moved.predict(X), plain.scores_)[0, 1] > 0.9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "robust"}, "flip_rate is missing"),
        ({"loss": "robust", "flip_rate": 0.5}, "below 0.5"),
        ({"loss": "robust", "flip_rate": 0.2, "weight_decay": 0.0}, "positive weight_decay"),
        ({"flip_rate": 0.2}, "which has none"),
        ({"loss": "other"}, "choose one of per-worker"),
        ({"reliability_prior": 3}, "two numbers"),
        ({"selection": "gold"}, "choose one of auto, last, crowd"),
    ],
)
def test_wrong_parameters(options, words):
    X, votes = items_and_votes()
    with pytest.raises(ParameterError, match=words):
        PreferenceNet(**options).fit(X, votes)


def test_wrong_data():
    X, votes = items_and_votes()
    with pytest.raises(DataError, match=r"items \(.*\) that are not the row numbers 0 to 4"):
        PreferenceNet().fit(X[:5], votes)
    with pytest.raises(DataError, match="compared items have no features"):
        PreferenceNet().fit(X[:5], votes, items=range(5))
    with pytest.raises(DataError, match="items names 0 twice"):
        PreferenceNet().fit(X[:2], votes, items=[0, 0])
    same = CrowdPairs.from_arrays(None, None, [0], [1], ["left"], relation="same")
    with pytest.raises(DataError, match="the question 'same'"):
        PreferenceNet().fit(X, same)
    fit = PreferenceNet(epochs=1).fit(X, votes)
    with pytest.raises(DataError, match="X has 1 features"):
        fit.predict(X[:, :1])


def test_one_vote_is_enough_for_a_finite_answer():
    fit = PreferenceNet(epochs=3).fit(np.eye(2), (["ann"], [0], [1], ["left"]))
    assert np.isfinite(fit.scores_).all()
    assert fit.rank_.tolist() == [1, 2]
    assert 0.5 < fit.reliability_[0] < 0.95


def test_tables_and_the_public_names():
    X, votes = items_and_votes()
    fit = wc.learning.PreferenceNet(epochs=2).fit(X, votes)
    assert list(fit.main_columns()) == ["item", "score", "rank", "n_comparisons"]
    assert list(fit.worker_columns()) == [
        "worker",
        "n_labels",
        "agreement_with_result",
        "reliability",
    ]
    plain = PreferenceNet(epochs=2, loss="plain").fit(X, votes)
    assert list(plain.worker_columns()) == ["worker", "n_labels"]
