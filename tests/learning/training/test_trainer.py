"""Training: epochs, the best one, divergence, and random numbers of one thread alone."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

import wisecrowd as wc
from wisecrowd.core.exceptions import ConcurrentFitError, DataError
from wisecrowd.inference.monitor import reporting
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import AggNet, CrowdLayer
from wisecrowd.learning.ccem import CoupledModel
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import CrowdModel
from wisecrowd.learning.training.trainer import (
    TrainerOptions,
    TrainingState,
    make_optimizer,
    own_random_numbers,
    rate_factor,
    train,
)
from wisecrowd.nn.heads import SoftmaxConfusion
from wisecrowd.testing.crowds import simulated

DEFAULTS = {
    "epochs": 4, "batch_size": 8, "lr": 0.1, "crowd_lr": 0.01, "weight_decay": 0.0,
    "optimizer": "sgd", "schedule": "constant", "clip_gradient": None, "patience": None,
    "horizon": 4,
}  # fmt: skip


def options(**changes):
    return TrainerOptions(**{**DEFAULTS, **changes})


def problem(n=20):
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=n)
    X = np.eye(2)[truth] + 0.3 * rng.normal(size=(n, 2))
    votes = np.where(rng.random((n, 3)) < 0.8, truth[:, None], 1 - truth[:, None])
    data = CrowdData(X, CrowdLabels.from_matrix(votes), np.full(n, -1))
    torch.manual_seed(0)
    return CoupledModel(nn.Linear(2, 2), SoftmaxConfusion(3, 2)), data, torch.arange(n)


class Scripted(CrowdModel):
    """A model with one weight, whose loss is what the test says, epoch by epoch."""

    def __init__(self, losses):
        super().__init__(nn.Linear(1, 1, bias=False))
        nn.init.zeros_(self.network.weight)
        self.losses, self.epoch = losses, 0

    def begin_epoch(self, epoch, data):
        self.epoch = epoch

    def loss(self, batch):
        # The gradient is -1: plain SGD adds the rate to the weight with every step.
        weight = self.network.weight.sum()
        return self.losses[self.epoch] + weight.detach() - weight


def scripted(losses, n=4):
    labels = CrowdLabels.from_matrix(np.zeros((n, 1), int))
    return Scripted(losses), CrowdData(np.ones((n, 1)), labels, np.full(n, -1)), torch.arange(n)


def weight_after(losses, **settings):
    model, data, rows = scripted(losses)
    score = settings.pop("score", None)
    chosen = options(**{"lr": 1.0, "epochs": len(losses), **settings})
    found = None if score is None else (lambda: score[model.epoch])
    state = train(model, data, rows, chosen, score=found)
    return float(model.network.weight.detach()), state


def test_the_loss_falls_and_history_says_so():
    model, data, rows = problem()
    state = train(model, data, rows, options(epochs=10))
    losses = [record["loss"] for record in state.history]
    assert [record["epoch"] for record in state.history] == list(range(1, 11))
    assert losses[-1] < losses[0]
    assert (state.epoch, state.best_epoch, state.stopped) == (10, 10, "")


def test_without_a_score_the_last_epoch_is_kept_and_with_one_the_best():
    # Momentum .9 on a gradient of -1: the weight after epochs 1, 2, 3, 4.
    path = np.cumsum([sum(0.9**i for i in range(t)) for t in range(1, 5)])
    weight, state = weight_after([1.0] * 4)
    assert weight == pytest.approx(path[3])
    weight, state = weight_after([1.0] * 4, score=[0.0, 5.0, 5.0, 1.0])
    assert weight == pytest.approx(path[1])  # the first of equals
    assert (state.best_epoch, state.best_score, state.epoch) == (2, 5.0, 4)


def test_patience_stops_after_so_many_epochs_without_a_better_one():
    _, state = weight_after([1.0] * 9, score=[0, 3, 2, 2, 2, 9, 9, 9, 9], patience=3)
    assert (state.epoch, state.best_epoch, state.stopped) == (5, 2, "patience")
    _, state = weight_after([1.0] * 9, score=[0, 3, 2, 2, 4, 1, 1, 1, 9], patience=3)
    assert (state.epoch, state.best_epoch) == (8, 5)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e7])
def test_a_diverging_loss_stops_with_advice_and_keeps_the_last_good_state(bad):
    weight, state = weight_after([1.0, 1.0, bad, 1.0])
    assert weight == pytest.approx(1 + 1.9)
    assert (state.epoch, state.best_epoch) == (2, 2)
    assert "epoch 3" in state.stopped
    assert "lower lr" in state.stopped
    weight, state = weight_after([bad if not math.isfinite(bad) else math.nan, 1.0])
    assert (weight, state.epoch) == (0.0, 0)  # nothing was good but the start


def test_a_rate_far_too_high_is_noticed_though_all_stays_finite():
    model, data, rows = problem()
    before = model.network.weight.detach().clone()
    state = train(model, data, rows, options(lr=1e6, optimizer="adam"))
    assert "a weight grew to" in state.stopped
    assert torch.isfinite(model.network.weight).all()
    assert state.epoch == 0
    assert torch.equal(model.network.weight, before)


def test_a_large_loss_from_the_start_is_no_divergence():
    _, state = weight_after([1e6, 5e5, 4e5])
    assert (state.stopped, state.epoch) == ("", 3)


def test_ctrl_c_keeps_the_best_state_so_far():
    def interrupt(progress):
        if progress.iteration == 3:
            raise KeyboardInterrupt

    with reporting(interrupt):
        weight, state = weight_after([1.0] * 5, score=[0.0, 4.0, 1.0, 9.0, 9.0])
    assert weight == pytest.approx(1 + 1.9)
    assert state.interrupted
    assert (state.epoch, state.best_epoch) == (3, 2)


def test_ctrl_c_in_the_middle_of_an_epoch_forgets_the_half_of_it():
    model, data, rows = scripted([1.0] * 5)
    calls = []

    def interrupted(batch):
        calls.append(1)
        if len(calls) == 6:  # two batches per epoch: the second of the third
            raise KeyboardInterrupt
        return Scripted.loss(model, batch)

    model.loss = interrupted
    state = train(model, data, rows, options(lr=1.0, batch_size=2, epochs=5))
    assert (state.epoch, state.interrupted) == (2, True)
    steps = np.cumsum([sum(0.9**i for i in range(t)) for t in range(1, 5)])
    assert float(model.network.weight.detach()) == pytest.approx(steps[3])


def test_gradients_are_clipped():
    model, data, rows = problem()
    start = model.network.weight.detach().clone()
    train(model, data, rows, options(epochs=1, batch_size=20, clip_gradient=1e-6))
    assert (model.network.weight - start).abs().max() < 1e-6


def test_network_and_crowd_have_their_own_rate_and_decay():
    model, _, _ = problem()
    network, crowd = make_optimizer(model, options(weight_decay=0.3)).param_groups
    assert (network["lr"], network["weight_decay"]) == (0.1, 0.3)
    assert (crowd["lr"], crowd["weight_decay"]) == (0.01, 0.0)
    assert crowd["params"][0] is model.head.by_label
    kinds = {
        name: type(make_optimizer(model, options(optimizer=name))).__name__
        for name in ("adam", "adamw", "sgd")
    }
    assert kinds == {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD"}


def test_a_module_without_parameters_is_said():
    with pytest.raises(DataError, match="no parameters to train"):
        make_optimizer(CrowdModel(nn.Identity()), options())


def test_schedules_are_those_of_torch():
    steps = 40
    parameter = [nn.Parameter(torch.zeros(1))]
    for name, schedule in {
        "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, steps),
        "one-cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(
            o, 1.0, total_steps=steps, cycle_momentum=False, div_factor=25.0, final_div_factor=1e9
        ),
    }.items():
        optimizer = torch.optim.SGD(parameter, lr=1.0)
        scheduler, theirs = schedule(optimizer), []
        for _ in range(steps):
            theirs.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
        ours = [rate_factor(name, step, steps) for step in range(steps)]
        # One-cycle has its turning points a fraction of a step apart.
        np.testing.assert_allclose(ours, theirs, atol=0.0 + (1e-6 if name == "cosine" else 0.12))
    assert {rate_factor("constant", step, 9) for step in range(9)} == {1.0}
    assert rate_factor("one-cycle", 0, 100) == pytest.approx(0.04)
    assert rate_factor("one-cycle", 30, 100) == pytest.approx(1.0)


def test_the_schedule_is_made_for_the_horizon():
    # A refit that stops early has the rates that the first run had.
    model, data, rows = scripted([1.0] * 4)
    seen = []
    model.loss = lambda batch: (
        seen.append(optimizer.param_groups[0]["lr"]) or Scripted.loss(model, batch)
    )
    chosen = options(epochs=2, horizon=4, schedule="cosine", lr=1.0)
    optimizer = make_optimizer(model, chosen)
    train(model, data, rows, chosen, optimizer=optimizer)
    assert seen == pytest.approx([rate_factor("cosine", t, 4) for t in range(2)])


def test_rows_are_seen_once_per_epoch_in_another_order():
    model, data, rows = problem()
    seen = []
    model.loss = lambda batch: seen.append(batch.rows) or CoupledModel.loss(model, batch)
    train(model, data, rows[:17], options(epochs=2))
    first, second = torch.cat(seen[:3]), torch.cat(seen[3:])
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(17))
    assert not torch.equal(first, second)
    assert sorted(len(part) for part in seen) == [5, 5, 6, 6, 6, 6]  # no tiny batch at the end


def test_it_goes_on_from_a_state():
    model, data, rows = problem()
    state = train(model, data, rows, options(epochs=6), state=TrainingState(epoch=4))
    assert (state.epoch, len(state.history)) == (6, 2)


LABELS = simulated(60, 6, 2).labels
X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)


def test_learners_in_different_threads_give_what_they_give_alone():
    makers = [lambda: CrowdLayer(epochs=5), lambda: AggNet(epochs=5)] * 2
    alone = [make().fit(X, LABELS).probas_ for make in makers]
    with ThreadPoolExecutor(4) as pool:
        together = pool.map(lambda make: make().fit(X, LABELS).probas_, makers)
        for found, expected in zip(together, alone, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_loading_in_another_thread_does_not_disturb_a_fit(tmp_path):
    CrowdLayer(epochs=1).fit(X, LABELS).save(tmp_path / "model")
    expected = CrowdLayer(epochs=20).fit(X, LABELS).probas_
    over = threading.Event()

    def load_again_and_again():
        while not over.is_set():
            wc.load(tmp_path / "model")

    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(load_again_and_again)
        try:
            found = CrowdLayer(epochs=20).fit(X, LABELS).probas_
        finally:
            over.set()
        loading.result()
    np.testing.assert_array_equal(found, expected)


def test_the_users_own_draws_go_on_as_if_nothing_had_happened(tmp_path):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    CrowdLayer(epochs=1).fit(X, LABELS).save(tmp_path / "model")
    wc.load(tmp_path / "model")
    assert torch.equal(torch.rand(3), expected)


def test_a_learner_is_fitted_by_one_thread_at_a_time(monkeypatch):
    learner = CrowdLayer(epochs=1)
    entered = threading.Event()
    # Of the class: a fit works on a new object.
    monkeypatch.setattr(CrowdLayer, "_selection", lambda *_: entered.set() or "last")
    with ThreadPoolExecutor(1) as pool:
        with own_random_numbers():
            running = pool.submit(learner.fit, X, LABELS)
            assert entered.wait(10)  # now it waits for the random numbers
            with pytest.raises(ConcurrentFitError, match="CrowdLayer is being fitted"):
                learner.fit(X, LABELS)
        assert running.result().n_iter_ == 1
