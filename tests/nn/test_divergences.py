"""Each divergence against its own definition, and the gain against a world that can be counted."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wisecrowd.nn.divergences import DIVERGENCES, information_gain, log_ratio

NAMES = list(DIVERGENCES)


@pytest.mark.parametrize("name", NAMES)
def test_the_slope_is_the_derivative(name):
    log_k = torch.linspace(-2, 2, 41, dtype=torch.double, requires_grad=True)
    value = DIVERGENCES[name].value(log_k)
    (by_log,) = torch.autograd.grad(value.sum(), log_k)
    slope = by_log / log_k.detach().exp()  # d f / d k
    torch.testing.assert_close(DIVERGENCES[name].slope(log_k.detach()), slope)


@pytest.mark.parametrize("name", NAMES)
def test_the_conjugate_is_the_numerical_one(name):
    divergence = DIVERGENCES[name]
    grid = torch.linspace(-12, 6, 400_001, dtype=torch.double)
    for at in (-1.0, -0.2, 0.0, 0.7):
        log_k = torch.tensor(at, dtype=torch.double)
        slope = divergence.slope(log_k)
        numerical = (slope * grid.exp() - divergence.value(grid)).max()
        assert divergence.conjugate(log_k).item() == pytest.approx(numerical.item(), abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_f_is_zero_at_one(name):
    assert DIVERGENCES[name].value(torch.zeros(1, dtype=torch.double)).item() == 0.0


class World:
    """Two classes; features with three values and two independent experts with two labels each."""

    prior = np.array([0.35, 0.65])
    of_x = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    of_y = (np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([[0.6, 0.4], [0.1, 0.9]]))

    def __init__(self) -> None:
        answers = np.einsum("ka,kb->kab", *self.of_y).reshape(2, 4)
        self.joint = np.einsum("k,kx,ky->xy", self.prior, self.of_x, answers)
        self.product = np.outer(self.joint.sum(axis=1), self.joint.sum(axis=0))
        self.h = self._posterior(self.of_x)  # (3, 2)
        self.g = self._posterior(answers)  # (4, 2)

    def _posterior(self, likelihood):
        scores = (self.prior[:, None] * likelihood).T
        return torch.tensor(scores / scores.sum(axis=1, keepdims=True)).log()

    def gain(self, name, log_h, log_g, log_prior):
        log_k = log_ratio(log_h, log_g, log_prior)
        divergence = DIVERGENCES[name]
        joint, product = torch.tensor(self.joint), torch.tensor(self.product)
        return (joint * divergence.slope(log_k)).sum() - (
            product * divergence.conjugate(log_k)
        ).sum()

    def information(self, name):
        ratio = torch.tensor(self.joint / self.product).log()
        return (torch.tensor(self.product) * DIVERGENCES[name].value(ratio)).sum().item()


@pytest.mark.parametrize("name", NAMES)
def test_the_posteriors_gain_the_whole_information_and_nothing_gains_more(name):
    world = World()
    log_prior = torch.tensor(world.prior).log()
    best = world.gain(name, world.h, world.g, log_prior).item()
    assert best == pytest.approx(world.information(name), abs=1e-12)
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        moved = [
            torch.log_softmax(part + 0.3 * torch.randn(part.shape, generator=generator), dim=-1)
            for part in (world.h, world.g, log_prior)
        ]
        assert world.gain(name, *moved).item() <= best + 1e-12


@pytest.mark.parametrize("name", ["kl", "pearson", "jensen-shannon", "hellinger"])
def test_the_maximum_is_found_by_climbing(name):
    world = World()
    generator = torch.Generator().manual_seed(1)
    free = [
        torch.randn(shape, generator=generator, dtype=torch.double).requires_grad_()
        for shape in ((3, 2), (4, 2), (2,))
    ]
    optimizer = torch.optim.LBFGS(free, max_iter=500, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        value = -world.gain(name, *(torch.log_softmax(part, dim=-1) for part in free))
        value.backward()
        return value

    optimizer.step(loss)
    assert -loss().item() == pytest.approx(world.information(name), abs=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_a_constant_classifier_gains_nothing(name):
    world = World()
    log_prior = torch.tensor(world.prior).log()
    for share in (0.05, 0.35, 0.5, 0.9):
        constant = torch.tensor([share, 1 - share], dtype=torch.double).log().repeat(3, 1)
        gain = world.gain(name, constant, world.g, log_prior).item()
        assert gain <= 1e-12
        if share == 0.35:
            assert gain == pytest.approx(0.0, abs=1e-12)


def test_a_batch_is_an_unbiased_sample_of_the_population():
    world = World()
    rng = np.random.default_rng(0)
    log_prior = torch.tensor(world.prior).log()
    cells = rng.choice(12, size=4000, p=world.joint.ravel())
    sampled = information_gain(
        DIVERGENCES["kl"], world.h[cells // 4], world.g[cells % 4], log_prior
    )
    assert sampled.item() == pytest.approx(world.information("kl"), abs=0.02)


def test_ratios_that_underflow_keep_their_gradient():
    log_h = torch.tensor([[0.0, -200.0], [-200.0, 0.0]], requires_grad=True)
    log_p = torch.tensor([0.5, 0.5]).log()
    gain = information_gain(DIVERGENCES["kl"], log_h, log_h.detach().flip(1), log_p)
    gain.backward()
    assert torch.isfinite(gain)
    assert torch.isfinite(log_h.grad).all()
    assert (log_h.grad != 0).any()


def test_the_ratio_is_a_sum_of_logarithms_also_where_doubles_underflow():
    log_h = torch.log_softmax(3 * torch.randn(4, 3), dim=1)
    log_prior = torch.tensor([0.2, 0.3, 0.5]).log()
    for far in (0.0, 900.0):  # the largest terms of the two then belong to different classes
        log_h[0] = torch.tensor([0.0, -far, -far])
        log_g = log_h.flip(0, 1).clone().requires_grad_()
        expected = torch.logsumexp(log_h[:, None] + (log_g - log_prior)[None], dim=2)
        found = log_ratio(log_h, log_g, log_prior)
        torch.testing.assert_close(found, expected)
        slopes = [torch.autograd.grad(x.sum(), log_g)[0] for x in (found, expected)]
        torch.testing.assert_close(*slopes)
