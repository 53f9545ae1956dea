"""CRH: the weights solve their step, and the alternation descends."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation import CRH
from wisecrowd.kinds.classes.container import CrowdLabels


def random_labels(seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, 150)
    wrong = rng.integers(0, 4, (150, 8))
    matrix = np.where(rng.random((150, 8)) < np.linspace(0.2, 0.8, 8), truth[:, None], wrong)
    matrix[rng.random(matrix.shape) < 0.5] = -1
    return CrowdLabels.from_matrix(matrix, missing=-1), matrix


def losses(model, matrix, normalize):
    """Return the loss of every worker under the model's labels, half a wrong label added."""
    best = model.probas_ >= model.probas_.max(axis=1, keepdims=True) - 1e-9
    share = best / best.sum(axis=1, keepdims=True)
    right = np.take_along_axis(share, np.maximum(matrix, 0), axis=1)  # tied classes share a win
    wrong = np.where(matrix >= 0, 1 - right, 0.0).sum(axis=0) + 0.5
    return wrong / ((matrix >= 0).sum(axis=0) + 1) if normalize else wrong


@pytest.mark.parametrize("normalize", [True, False])
def test_weights_minimise_the_objective_under_the_constraint(normalize):
    labels, matrix = random_labels(4)
    model = CRH(normalize=normalize).fit(labels)
    assert model.converged_
    loss = losses(model, matrix, normalize)
    np.testing.assert_allclose(model.vote_weight_, -np.log(loss / loss.sum()))
    assert np.exp(-model.vote_weight_).sum() == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    for _ in range(20):  # any other feasible weights are worse
        other = -np.log(rng.dirichlet(np.ones(8)))
        assert other @ loss >= model.vote_weight_ @ loss


@pytest.mark.parametrize("seed", range(10))
def test_the_alternation_never_increases_its_objective(seed):
    labels, _ = random_labels(seed)
    history = np.array(CRH(normalize=False).fit(labels).history_)
    assert len(history) > 1
    assert (np.diff(history) <= 1e-9 * np.abs(history[:-1])).all()


def test_a_lone_worker_is_followed():
    model = CRH().fit(CrowdLabels.from_arrays(["s", "t"], ["w", "w"], ["a", "b"]))
    assert model.labels_.tolist() == ["a", "b"]
    np.testing.assert_allclose(model.confidence_, 0.8)  # nothing shows how good the worker is


@pytest.mark.filterwarnings("ignore:.*were not in the fit")
def test_an_unknown_worker_weighs_as_little_as_the_worst():
    labels, _ = random_labels()
    model = CRH().fit(labels)
    best = int(model.vote_weight_.argmax())
    new = CrowdLabels.from_arrays([0, 0], [best, 99], [0, 1], classes=range(4))
    weights = np.array([model.vote_weight_[best], model.vote_weight_.min()])
    np.testing.assert_allclose(model.predict_proba(new)[0, :2], weights / weights.sum())
