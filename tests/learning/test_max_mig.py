"""Max-MIG: its divergences and gain by definition, its forecast in a small world, bare tasks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import wisecrowd as wc
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.learning import MaxMIG
from wisecrowd.learning.max_mig import (
    DIVERGENCES,
    LARGEST_LEAD,
    InformationModel,
    VoteLayer,
    class_order,
    information_gain,
    informative_votes,
    log_ratio,
    start_weights,
)
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.label_model import soft_votes


def crowd(seed=0, n=400, accuracy=(0.8, 0.7, 0.75), shift=2.0, missing=0.3):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += shift * (2 * z - 1)
    right = rng.random((n, len(accuracy))) < np.asarray(accuracy)
    votes = np.where(right, z[:, None], 1 - z[:, None]).astype(float)
    hidden = rng.random(votes.shape) < missing
    hidden[hidden.all(axis=1), 0] = False
    votes[hidden] = np.nan
    return X, wc.CrowdLabels.from_matrix(votes, classes=[0, 1]), z


def fast(**parameters):
    options = {"module": "linear", "epochs": 25, "lr": 0.05, "weight_decay": 1e-4}
    return MaxMIG(**{**options, **parameters})


@pytest.mark.parametrize("divergence", ["kl", "pearson", "jensen-shannon", "hellinger"])
def test_learns_the_classes_with_every_divergence(divergence):
    X, labels, z = crowd()
    model = fast(divergence=divergence).fit(X, labels)
    assert model.score(X, z) > 0.93
    assert (model.labels_ == z).mean() > 0.95


def test_the_forecast_is_classifier_times_vote_over_prior():
    X, labels, _ = crowd(n=80)
    model = fast(epochs=3, learn_prior=True).fit(X, labels)
    product = model.predict_proba(X) * model.aggregate(labels) / model.prior_
    expected = product / product.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X, labels), expected, atol=1e-6)
    np.testing.assert_allclose(model.probas_, expected, atol=1e-6)
    assert model.prior_.sum() == pytest.approx(1.0)


def test_the_vote_of_independent_experts_is_their_posterior():
    """With W = log C and b = log p the aggregator is Bayes' rule."""
    X, labels, _ = crowd(n=50)
    model = fast(epochs=1).fit(X, labels)
    confusion = np.array([[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]], [[0.5, 0.5]] * 2])
    model.vote_weight_ = np.log(confusion)
    log_post = np.zeros((labels.n_tasks, 2))
    for i, j, y in zip(labels.task, labels.worker, labels.label, strict=True):
        log_post[i] += np.log(confusion[j, :, y])
    expected = np.exp(log_post) / np.exp(log_post).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.aggregate(labels), expected, atol=1e-12)


def test_one_good_expert_among_a_hundred_copies_of_a_coin():
    """The paper's example: likelihood methods believe the coin, here its copies cancel out."""
    rng = np.random.default_rng(0)
    n = 600
    z = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 5))
    X[:, 0] += 2.5 * (2 * z - 1)
    coin = rng.integers(0, 2, n)
    votes = np.column_stack([z, np.repeat(coin[:, None], 100, axis=1)])
    model = MaxMIG(epochs=200, batch_size=100).fit(X, votes)
    assert model.score(X, z) > 0.95
    assert (model.labels_ == z).mean() > 0.95
    tilt = model.vote_weight_[:, 1, 1] - model.vote_weight_[:, 0, 1]
    tilt += model.vote_weight_[:, 0, 0] - model.vote_weight_[:, 1, 0]
    assert abs(tilt[1:].sum()) < 0.2 * tilt[0]


@pytest.mark.parametrize("too_sure", [1.0, 4.0])
def test_the_vote_is_scaled_to_what_it_gains_on_other_tasks(too_sure):
    """The gain is highest at the posteriors: a vote that is four times too sure is found out."""
    X, labels, _ = crowd(n=1000, shift=1.0, missing=0.0)
    network = torch.nn.Linear(4, 2, bias=False)  # the true log-odds are twice the first feature
    with torch.no_grad():
        network.weight.zero_()
        network.weight[1, 0] = 2.0
    right = np.array([0.8, 0.7, 0.75])
    confusion = np.stack([np.array([[a, 1 - a], [1 - a, a]]) for a in right])
    vote = VoteLayer(too_sure * np.log(confusion))
    model = InformationModel(network, vote, 2, "kl", learn=False)
    data = CrowdData(X.astype(np.float32), labels, np.full(1000, -1))
    scale = model.evidence_scale(data, torch.arange(1000))
    assert scale == pytest.approx(1 / too_sure, rel=0.35)
    model.scale_evidence(scale)
    assert model.evidence_scale(data, torch.arange(1000)) == 1.0


def test_chooses_its_epoch_by_the_gain():
    X, labels, _ = crowd(n=60)
    model = fast(epochs=3, selection="crowd").fit(X, labels)
    assert model.selection_ == "crowd"
    assert all(record["score"] >= 0 for record in model.history_)  # a gain, not a likelihood


def test_a_worker_without_labels_has_no_weight():
    X, labels, _ = crowd(n=60)
    kept = labels.select_annotations(labels.worker != 1)
    some = kept.labels_per_task > 0
    model = fast(epochs=2).fit(X[some], kept[some])
    np.testing.assert_array_equal(model.vote_weight_[1], 0.0)


def test_starts_from_any_method_and_with_any_aggregator():
    X, labels, z = crowd()
    assert fast(start="dawid-skene").fit(X, labels).score(X, z) > 0.93
    assert fast(start=wc.aggregation.OneCoin()).fit(X, labels).score(X, z) > 0.93

    class Deeper(torch.nn.Module):
        def __init__(self, n_workers, n_classes):
            super().__init__()
            self.rows = torch.nn.Embedding(n_workers * n_classes, 8)
            self.out = torch.nn.Linear(8, n_classes)

        def forward(self, batch):
            return self.out(batch.per_task(self.rows(2 * batch.worker + batch.label)).tanh())

    model = fast(aggregator=Deeper, crowd_lr=0.05, epochs=40).fit(X, labels)
    # A richer aggregator has no start: it may learn the classes in either order.
    assert max(model.score(X, z), 1 - model.score(X, z)) > 0.93
    assert model.predict_proba(X, labels).shape == (len(X), 2)


def test_a_method_to_start_from_stays_as_the_user_gave_it():
    X, labels, _ = crowd(n=60)
    start = wc.aggregation.OneCoin()
    fast(epochs=1, start=start).fit(X, labels)
    assert not start.__sklearn_is_fitted__()


def test_an_aggregator_of_the_user_repeats_the_fit_and_forgets_the_one_before():
    class Counter(torch.nn.Module):
        def __init__(self, n_workers, n_classes):
            super().__init__()
            self.n_classes = n_classes
            self.rows = torch.nn.Embedding(n_workers * n_classes, n_classes)

        def forward(self, batch):
            return batch.per_task(self.rows(self.n_classes * batch.worker + batch.label))

    X, labels, _ = crowd(n=60)
    few = crowd(n=52, accuracy=(0.8, 0.7), seed=1)
    fresh = fast(aggregator=Counter, epochs=2).fit(X, labels)
    np.testing.assert_array_equal(fresh.predict_proba(X, labels), fresh.probas_)
    for former in (fast(aggregator=Counter, epochs=2), fast(epochs=2)):
        again = former.fit(*few[:2]).set_params(aggregator=Counter).fit(X, labels)
        np.testing.assert_array_equal(again.probas_, fresh.probas_)
        np.testing.assert_array_equal(again.aggregate(labels), fresh.aggregate(labels))
    assert again.set_params(aggregator=None).fit(X, labels)._vote is None


def test_a_saved_model_forecasts_as_before(tmp_path):
    X, labels, _ = crowd(n=80)
    model = fast(epochs=3).fit(X, labels)
    model.save(tmp_path / "model")
    again = wc.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X, labels), model.predict_proba(X, labels))
    np.testing.assert_array_equal(again.aggregate(labels), model.aggregate(labels))


def test_says_when_it_collapsed():
    class Stubborn(torch.nn.Linear):
        def forward(self, x):
            return 0 * super().forward(x) + torch.tensor([9.0, -9.0])

    X, labels, _ = crowd(n=60)
    with pytest.warns(wc.core.exceptions.WisecrowdWarning, match="collapsed"):
        fast(module=Stubborn(4, 2), epochs=1).fit(X, labels)


@pytest.mark.parametrize(
    "parameters", [{"divergence": "tv"}, {"floor": 0.0}, {"learn_prior": 1}, {"aggregator": 3}]
)
def test_refuses_wrong_parameters(parameters):
    X, labels, _ = crowd(n=20)
    with pytest.raises(ParameterError):
        fast(**parameters).fit(X, labels)


def data_of(votes):
    votes = np.asarray(votes, dtype=float)
    labels = wc.CrowdLabels.from_matrix(votes, classes=[0, 1])
    return CrowdData(np.zeros((len(votes), 1)), labels, np.full(len(votes), -1))


def test_logits_are_sums_of_rows():
    data = data_of([[0, 1, np.nan], [1, np.nan, 1]])
    weight = np.arange(12.0).reshape(3, 2, 2)  # worker, class, label
    logits = VoteLayer(weight)(data.batch(torch.arange(2))).detach().numpy()
    np.testing.assert_allclose(logits[0], weight[0, :, 0] + weight[1, :, 1])
    np.testing.assert_allclose(logits[1], weight[0, :, 1] + weight[2, :, 1])


def test_the_start_is_the_log_confusion_of_the_votes_kept_within_bounds():
    truth = np.arange(40) % 2
    few, many = (data_of(np.repeat(truth[:, None], n, axis=1)) for n in (1, 60))
    np.testing.assert_allclose(
        start_weights("votes", few, 0.01)[0], np.log(np.eye(2) + 0.01), atol=1e-6
    )
    lead = start_weights("votes", many, 0.01)[:, 0, 0].sum()
    lead -= start_weights("votes", many, 0.01)[:, 1, 0].sum()
    np.testing.assert_allclose(lead, LARGEST_LEAD)


def test_the_paper_s_start_is_the_log_confusion_of_plain_vote_shares():
    votes = np.array([[0, 0, 1], [1, 1, 1], [0, 1, 1], [0, 0, 1]])
    shares = np.array([[2, 1], [0, 3], [1, 2], [2, 1]]) / 3
    weight = start_weights("soft-votes", data_of(votes), 1e-4)
    for j in range(3):
        for k in range(2):
            for label in range(2):
                share = shares[votes[:, j] == label, k].sum() / shares[:, k].sum()
                assert weight[j, k, label] == pytest.approx(np.log(share + 1e-4), abs=1e-6)
    many = data_of(np.repeat((np.arange(40) % 2)[:, None], 60, axis=1))
    lead = start_weights("soft-votes", many, 0.01)[:, :, 0].sum(axis=0)
    assert lead[0] - lead[1] > 5 * LARGEST_LEAD  # not limited


def test_classes_are_named_after_the_labels_that_speak_for_them():
    data = data_of(np.repeat((np.arange(10) % 2)[:, None], 3, axis=1))
    swapped = np.tile(np.array([[0.0, 1.0], [1.0, 0.0]]), (3, 1, 1))
    assert class_order(VoteLayer(swapped), data.labels).tolist() == [1, 0]
    assert class_order(VoteLayer(1 - swapped), data.labels).tolist() == [0, 1]


def test_who_always_says_the_same_tells_nothing():
    truth = np.arange(40) % 2
    votes = np.column_stack([truth, truth, *5 * [np.zeros(40, dtype=int)]])
    data = CrowdData(np.zeros((40, 1)), wc.CrowdLabels.from_matrix(votes), np.full(40, -1))
    assert (soft_votes(data)[truth == 1, 1] < 0.5).all()
    assert (informative_votes(data)[truth == 1, 1] > 0.7).all()
    assert (informative_votes(data)[truth == 0, 0] > 0.99).all()


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
