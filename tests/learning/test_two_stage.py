from __future__ import annotations

import numpy as np
import pytest
import torch

from wisecrowd.aggregation import DawidSkene
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.learning import TwoStage

SMALL = {"module": "linear", "epochs": 5, "lr": 0.1}


def crowd(n=60, n_workers=4, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = np.eye(3)[truth] + 0.3 * rng.normal(size=(n, 3))
    right = rng.random((n, n_workers)) < 0.7
    votes = np.where(right, truth[:, None], rng.integers(3, size=(n, n_workers)))
    return X, votes, truth


def weights(model):
    return torch.cat([p.detach().flatten() for p in model._network.parameters()])


def test_certain_soft_labels_are_supervised_training():
    X, _, truth = crowd()
    # Everybody says the truth: soft, hard and one worker's labels are the same targets.
    everybody = np.repeat(truth[:, None], 3, axis=1)
    soft = TwoStage(**SMALL).fit(X, everybody)
    hard = TwoStage(**SMALL, labels="hard").fit(X, everybody)
    supervised = TwoStage(**SMALL).fit(X, truth)
    assert torch.equal(weights(soft), weights(hard))
    assert torch.equal(weights(soft), weights(supervised))


def test_the_full_batch_step_is_that_of_weighted_cross_entropy():
    X, votes, _ = crowd()
    settings = {
        "module": torch.nn.Linear(3, 3), "epochs": 1, "lr": 0.1, "optimizer": "sgd",
        "weight_decay": 0.0, "batch_size": 1000,
    }  # fmt: skip
    model = TwoStage(**settings, weighted=True, aggregator=DawidSkene(max_iter=5)).fit(X, votes)
    q = torch.tensor(DawidSkene(max_iter=5).fit(votes).probas_, dtype=torch.float32)
    layer = torch.nn.Linear(3, 3)
    layer.load_state_dict(settings["module"].state_dict())
    log_f = torch.log_softmax(layer(torch.tensor(X, dtype=torch.float32)), dim=1)
    sure = q.max(dim=1).values
    torch.autograd.backward((sure * -(q * log_f).sum(1)).sum() / sure.sum())
    assert torch.allclose(model._network.weight, layer.weight - 0.1 * layer.weight.grad, atol=1e-6)


def test_the_aggregator_is_a_name_or_an_object_that_stays_as_it_is():
    X, votes, _ = crowd()
    given = DawidSkene(prior=1.0)
    model = TwoStage(**SMALL, aggregator=given).fit(X, votes)
    assert not given.__sklearn_is_fitted__()
    np.testing.assert_allclose(model.aggregated_, DawidSkene(prior=1.0).fit(votes).probas_)
    assert model.get_params()["aggregator__prior"] == 1.0
    named = TwoStage(**SMALL, aggregator="dawid-skene").fit(X, votes)
    np.testing.assert_allclose(named.aggregated_, DawidSkene().fit(votes).probas_)


def test_gold_reaches_the_aggregator_and_the_targets():
    X, votes, truth = crowd()
    gold = {i: int(truth[i]) for i in range(10)}
    model = TwoStage(**SMALL, aggregator="dawid-skene").fit(X, votes, gold=gold)
    np.testing.assert_array_equal(model.aggregated_[:10], np.eye(3)[truth[:10]])
    expected = DawidSkene().fit(votes, gold=gold).probas_
    np.testing.assert_allclose(model.aggregated_, expected)


def test_held_out_tasks_stay_out_of_the_aggregation():
    X, votes, _ = crowd()
    model = TwoStage(**SMALL, selection="crowd", refit=False, aggregator="dawid-skene")
    model.fit(X, votes)
    whole = DawidSkene().fit(votes).probas_
    assert np.abs(model.aggregated_ - whole).max() > 0.1  # the hidden tasks have the class prior


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"aggregator": "no-such"}, "no-such"),
        ({"aggregator": 3}, "aggregator is 3"),
        ({"labels": "medium"}, "soft, hard"),
        ({"weighted": 2}, "weighted"),
    ],
)
def test_bad_parameters(settings, message):
    X, votes, _ = crowd()
    with pytest.raises(ParameterError, match=message):
        TwoStage(**settings).fit(X, votes)


def test_a_parameter_inside_a_name_cannot_be_set():
    with pytest.raises(ParameterError, match="give it as an object"):
        TwoStage().set_params(aggregator__tol=1.0)
