"""Clipping, and the alternation that deepMF and deepBP share."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from wisecrowd.aggregation import BeliefPropagation, MeanField
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference.monitor import reporting
from wisecrowd.inference.priors import OneCoinPrior, TwoCoin
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.worker_prior import Discrete, MixturePrior
from wisecrowd.learning import DeepBP, DeepMF
from wisecrowd.learning.training.alternating import clip_probas

BOTH = pytest.mark.parametrize("method", [DeepMF, DeepBP])


def crowd(n=60, n_workers=6, n_classes=3, seed=0, right=0.6, missing=0.3, spread=0.5):
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n)
    X = np.eye(n_classes)[truth] + spread * rng.normal(size=(n, n_classes))
    votes = np.where(
        rng.random((n, n_workers)) < right,
        truth[:, None],
        rng.integers(n_classes, size=(n, n_workers)),
    ).astype(float)
    hidden = rng.random(votes.shape) < missing
    hidden[np.arange(n), rng.integers(n_workers, size=n)] = False
    votes[hidden] = np.nan
    return X, CrowdLabels.from_matrix(votes, classes=range(n_classes)), truth


class Fixed(nn.Module):
    """A network whose logits are the features, whatever it is trained on."""

    def __init__(self):
        super().__init__()
        self.idle = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + 0 * self.idle


# ---------------------------------------------------------------------------------------- the clip


def clipped_by_hand(row, largest):
    """Cap the largest class, share its surplus among those below the cap, and look again."""
    row = list(row)
    done = set()
    while max(row) > largest + 1e-12 and len(done) < len(row):
        done |= {k for k, p in enumerate(row) if p >= largest - 1e-12}
        surplus = sum(row[k] - largest for k in done)
        others = [k for k in range(len(row)) if k not in done]
        row = [largest if k in done else p for k, p in enumerate(row)]
        for k in others:
            row[k] += surplus / len(others)
    return row


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 6).flatmap(
        lambda k: st.tuples(
            st.lists(st.floats(0.0, 1.0), min_size=k, max_size=k), st.floats(1 / k, 1.0)
        )
    )
)
def test_clipping_caps_keeps_the_sum_and_the_order(case):
    row, largest = np.array(case[0]), case[1]
    probas = (row + 1e-3) / (row + 1e-3).sum()
    clipped = clip_probas(probas[None], largest)[0]
    assert clipped.sum() == pytest.approx(1.0)
    assert clipped.max() <= largest + 1e-9
    rising = clipped[np.argsort(probas, kind="stable")]
    assert (np.diff(rising) >= -1e-12).all()
    np.testing.assert_allclose(clipped, clipped_by_hand(probas, largest), atol=1e-9)


def test_the_ends_of_the_clip():
    probas = np.random.default_rng(0).dirichlet(np.ones(4), size=20)
    np.testing.assert_allclose(clip_probas(probas, 1.0), probas, rtol=1e-12)
    np.testing.assert_allclose(clip_probas(probas, 1 / 4), 1 / 4)
    np.testing.assert_allclose(clip_probas(probas, 1e-3), 1 / 4)  # there is nothing below


# ----------------------------------------------------------------------- the network is not heard


@pytest.mark.parametrize("module", ["linear", "mlp"])
def test_at_one_over_k_nothing_is_heard_of_the_network_by_mean_field(module):
    X, labels, _ = crowd()
    deep = DeepMF(module=module, clip=1 / 3, epochs=4, lr=0.1).fit(X, labels)
    plain = MeanField(class_prior="uniform", tol=1e-12, max_iter=1000, accelerate=False)
    plain.fit(labels)
    np.testing.assert_allclose(deep.probas_, plain.probas_, atol=1e-4)
    np.testing.assert_allclose(deep.confusion_, plain.confusion_, atol=1e-4)


@pytest.mark.parametrize("prior", ["weak", OneCoinPrior(1, 0.5), 0.5 + np.eye(3)])
def test_at_one_over_k_nothing_is_heard_of_the_network_by_belief_propagation(prior):
    X, labels, _ = crowd(n=7, n_workers=7, missing=0.75)  # few enough for an exact integral
    deep = DeepBP(module="linear", clip=1 / 3, epochs=4, lr=0.1, prior=prior).fit(X, labels)
    plain = BeliefPropagation(prior=prior, tol=1e-9, max_iter=500).fit(labels)
    np.testing.assert_allclose(deep.probas_, plain.probas_, atol=1e-9)
    np.testing.assert_allclose(deep.confusion_, plain.confusion_, atol=1e-9)


@BOTH
@pytest.mark.parametrize(
    "prior",
    [
        (2, 1),
        TwoCoin(2, 1, 2, 1),
        Discrete([0.5, 0.9], [0.3, 0.7]),
        MixturePrior([OneCoinPrior(8, 2), OneCoinPrior(2, 2)], [0.5, 0.5]),
    ],
)
def test_takes_every_prior(method, prior):
    X, labels, truth = crowd(n=100, n_workers=20, n_classes=2, right=0.7, missing=0.85)
    model = method(module="linear", epochs=8, lr=0.2, prior=prior).fit(X, labels)
    assert np.mean(model.labels_ == truth) > 0.9


# ---------------------------------------------------------------------------------- gold, clip_


@BOTH
def test_known_classes_stay_and_teach(method):
    """Gold that calls every class by the next one's name, against the crowd, is what counts."""
    X, labels, truth = crowd(n=90, missing=0.8, n_workers=15, spread=0.3)
    gold = {task: int(truth[i] + 1) % 3 for i, task in enumerate(labels.tasks[:70])}
    model = method(module="linear", epochs=25, lr=0.1).fit(X, labels, gold=gold)
    np.testing.assert_array_equal(model.probas_[:70], np.eye(3)[(truth[:70] + 1) % 3])
    assert np.mean(model.predict(X[70:]) == (truth[70:] + 1) % 3) > 0.8


@BOTH
def test_the_clip_is_chosen_without_gold(method, monkeypatch):
    """A network that knows is listened to, one that talks at random is not."""
    monkeypatch.setattr("wisecrowd.learning.training.alternating.CLIPS", (0.95,))
    options = {"module": Fixed(), "clip": "auto", "epochs": 2}
    _, labels, truth = crowd(n=200, n_classes=2, n_workers=40, missing=0.95, right=0.5)
    assert method(**options).fit(4 * np.eye(2)[truth], labels).clip_ == 0.95
    chance = np.random.default_rng(1).integers(2, size=200)
    assert method(**options).fit(4 * np.eye(2)[chance], labels).clip_ == 0.5


@BOTH
def test_clip_in_loss_stops_the_network_at_the_cap(method):
    X, labels, _ = crowd(n=100, n_workers=40, right=0.95, spread=0.05, missing=0.95)
    options = {"module": "linear", "clip": 0.6, "epochs": 40, "lr": 0.3, "steps": 10}
    free = method(**options).fit(X, labels)
    capped = method(**options, clip_in_loss=True).fit(X, labels)
    sure, less = (m.predict_proba(X).max(axis=1).mean() for m in (free, capped))
    assert sure > 0.95
    assert less < 0.9


# ------------------------------------------------------------------------------------------ resume


MATRICES = np.stack([0.7 * np.eye(3) + 0.1, np.full((3, 3), 1 / 3)])


class KilledError(Exception):
    """Stands for a process that is gone: nothing of the fit goes on."""


@BOTH
@pytest.mark.parametrize("case", ["each epoch", "every third", "matrices", "choosing"])
def test_a_resumed_fit_ends_with_the_same_bits(method, case, tmp_path):
    settings = {"epochs": 7, "lr": 0.02, "batch_size": 16, "steps": 3 if case[1] == "v" else 1}
    settings |= {"prior": Discrete(MATRICES, [0.5, 0.5])} if case == "matrices" else {}
    settings |= {"selection": "crowd"} if case == "choosing" else {}
    X, labels, _ = crowd(n=50)
    whole = method(**settings).fit(X, labels)
    seen = []

    def listen(progress):
        if progress.max_iter == 7:
            seen.append(progress)
        if len(seen) == 4:
            raise KilledError

    stopped = method(**settings, checkpoint=tmp_path / "fit")
    with reporting(listen), pytest.raises(KilledError):
        stopped.fit(X, labels)
    again = stopped.fit(X, labels, resume=True)
    ours, theirs = again._network.state_dict(), whole._network.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    np.testing.assert_array_equal(again.probas_, whole.probas_)
    np.testing.assert_array_equal(again.confusion_, whole.confusion_)
    assert again.history_ == whole.history_


@BOTH
def test_stopped_by_hand_before_the_first_epoch(method):
    X, labels, _ = crowd(n=30)

    class Stopped(nn.Linear):
        def forward(self, x):
            if self.training:
                raise KeyboardInterrupt
            return super().forward(x)

    with pytest.warns(Warning, match="interrupted|stopped"):
        model = method(module=Stopped(3, 3), epochs=5).fit(X, labels)
    assert np.isfinite(model.probas_).all()


@BOTH
@pytest.mark.parametrize(
    "parameters", [{"clip": 0.0}, {"clip": 1.1}, {"clip": "best"}, {"clip": True}, {"steps": 0},
                   {"rounds": 0}, {"clip_in_loss": 1}]
)  # fmt: skip
def test_refuses_wrong_parameters(method, parameters):
    X, labels, _ = crowd(n=20)
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        method(**parameters).fit(X, labels)


def test_only_epochs_are_reported_and_candidates_are_named():
    """Iterations of the inference inside an epoch would make its number and rate jump."""
    X, labels, _ = crowd(n=30)
    seen = []
    with reporting(seen.append):
        DeepMF(module="linear", epochs=2).fit(X, labels)
    assert [(p.unit, p.iteration, p.stage) for p in seen] == [("epoch", 1, ""), ("epoch", 2, "")]
    seen.clear()
    with reporting(seen.append):
        DeepMF(module="linear", epochs=1, clip="auto").fit(X, labels)
    assert seen[0].stage == "clip 0.333"
    assert seen[-1].stage == ""
    assert len({p.stage for p in seen}) == len(seen)
