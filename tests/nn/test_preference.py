"""Losses of preferences: unbiasedness, minima, limits and gradients."""

from __future__ import annotations

import math

import pytest
import torch

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.nn import (
    PairBatch,
    WorkerReliability,
    conservative_preference_loss,
    pair_collate,
    preference_loss,
    robust_preference_loss,
    worker_preference_loss,
)

MARGINS = torch.linspace(-6, 6, 25, dtype=torch.float64)


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3, 0.44])
def test_the_robust_loss_is_unbiased(rate):
    """Its mean over flips is the loss without noise, exactly."""
    right, wrong = (robust_preference_loss(h, rate) for h in (MARGINS, -MARGINS))
    mean = (1 - rate) * right + rate * wrong
    torch.testing.assert_close(mean, preference_loss(MARGINS), rtol=1e-12, atol=1e-12)


def test_the_slope_of_the_robust_loss_does_not_vanish():
    margin = torch.tensor(40.0, dtype=torch.float64, requires_grad=True)
    robust_preference_loss(margin, 0.2).backward()
    assert margin.grad.item() == pytest.approx(-0.2 / 0.6)


def test_the_conservative_loss_is_least_at_the_logit_of_the_rate():
    margin = torch.tensor(math.log(0.8 / 0.2), dtype=torch.float64, requires_grad=True)
    conservative_preference_loss(margin, 0.2).backward()
    assert abs(margin.grad.item()) < 1e-15


def test_flip_rates_are_capped_and_refused():
    torch.testing.assert_close(
        robust_preference_loss(MARGINS, 0.49), robust_preference_loss(MARGINS, 0.45)
    )
    for rate in (0.5, 0.9, -0.1, math.nan):
        for loss in (robust_preference_loss, conservative_preference_loss):
            with pytest.raises(ParameterError, match="flip rate"):
                loss(MARGINS, rate)


def test_flip_rates_may_differ_by_vote():
    rates = torch.tensor([0.1, 0.3])
    margin = torch.tensor([1.0, -2.0])
    each = [robust_preference_loss(h, float(r)) for h, r in zip(margin, rates, strict=True)]
    torch.testing.assert_close(robust_preference_loss(margin, rates), torch.stack(each))


def test_the_loss_of_workers_has_its_limits():
    far = torch.full_like(MARGINS, 40.0)
    torch.testing.assert_close(worker_preference_loss(MARGINS, far), preference_loss(MARGINS))
    torch.testing.assert_close(worker_preference_loss(MARGINS, -far), preference_loss(-MARGINS))
    coin = worker_preference_loss(MARGINS, torch.zeros_like(MARGINS))
    torch.testing.assert_close(coin, torch.full_like(MARGINS, math.log(2)))


def test_the_loss_of_workers_is_minus_the_log_probability():
    eta = 0.83
    logit = torch.full_like(MARGINS, math.log(eta / (1 - eta)))
    p = eta * torch.sigmoid(MARGINS) + (1 - eta) * torch.sigmoid(-MARGINS)
    torch.testing.assert_close(worker_preference_loss(MARGINS, logit), -p.log())


def test_gradients_are_those_of_finite_differences():
    logit = torch.linspace(-3, 3, 25, dtype=torch.float64, requires_grad=True)
    margin = MARGINS.clone().requires_grad_()
    assert torch.autograd.gradcheck(worker_preference_loss, (margin, logit))
    assert torch.autograd.gradcheck(lambda h: robust_preference_loss(h, 0.3), (margin,))
    assert torch.autograd.gradcheck(lambda h: conservative_preference_loss(h, 0.3), (margin,))


def test_reliabilities_start_where_they_are_told_and_have_a_beta_prior():
    head = WorkerReliability(3, start=0.8)
    torch.testing.assert_close(head.table(), torch.full((3,), 0.8))
    expected = 3 * (2 * math.log(0.8) + math.log(0.2))
    assert head.log_prior(2, 1).item() == pytest.approx(expected, rel=1e-5)
    assert head(torch.tensor([2, 0])).shape == (2,)


def test_a_tie_is_half_of_each_side_and_weights_are_repetitions():
    left, right = torch.tensor([0, 0, 0]), torch.tensor([1, 1, 1])
    worker = torch.zeros(3, dtype=torch.long)
    ties = PairBatch(torch.zeros(2, 1), left[:1], right[:1], worker[:1], torch.tensor([0.5]))
    won, lost = torch.tensor([1.0]), torch.tensor([3.0])
    assert float(ties.split(won, lost)) == 2.0
    repeated = PairBatch(torch.zeros(2, 1), left, right, worker, torch.tensor([1.0, 1.0, 0.0]))
    weighted = PairBatch(
        torch.zeros(2, 1), left[:2], right[:2], worker[:2], torch.tensor([1.0, 0.0]),
        torch.tensor([2.0, 1.0]),
    )  # fmt: skip
    three = repeated.split(won.expand(3), lost.expand(3))
    assert float(three) == pytest.approx(float(weighted.split(won.expand(2), lost.expand(2))))


def test_collated_samples_train_in_a_loop_of_ones_own():
    torch.manual_seed(0)
    x = torch.randn(40, 2)
    truth = x @ torch.tensor([1.0, -1.0])
    samples = [
        (x[a], x[a + 20], 0, float(truth[a] > truth[a + 20])) for a in range(20)
    ]  # fmt: skip
    batch = pair_collate(samples)
    reward = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(reward.parameters(), lr=0.1)
    for _ in range(50):
        margin = batch.margins(reward(batch.x)[:, 0])
        loss = batch.split(preference_loss(margin), preference_loss(-margin))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    margin = batch.margins(reward(batch.x)[:, 0])
    assert ((margin > 0) == (batch.share > 0.5)).float().mean() > 0.9
