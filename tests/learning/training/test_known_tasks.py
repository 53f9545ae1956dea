"""Tasks of the fit are found again by labels and output, and no others are."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.learning import DeepBP, InstanceConfusion
from wisecrowd.learning.training.known_tasks import find_tasks, label_keys


def crowd(n=40, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = np.eye(3)[truth] + 0.5 * rng.normal(size=(n, 3))
    votes = np.where(rng.random((n, 4)) < 0.7, truth[:, None], rng.integers(3, size=(n, 4)))
    return X, votes


def test_keys_know_worker_label_and_weight_and_no_order():
    task = np.repeat(np.arange(6), 2)
    worker = [0, 1, 1, 0, 0, 1, 0, 2, 0, 1, 0, 1]
    label = [0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1]
    weight = np.array([1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 1.0])
    names = [0, 1, 2], [0, 1]
    labels = CrowdLabels(
        task.astype(np.int32), np.array(worker, np.int32), np.array(label, np.int32),
        np.arange(7), *map(np.array, names), weight=weight,
    )  # fmt: skip
    keys = label_keys(labels)
    assert keys[0] == keys[1]
    assert len(set(keys[1:6].tolist())) == 5
    assert keys[6] == 0  # no labels
    unweighted = label_keys(labels.select_annotations(labels.task < 4))
    np.testing.assert_array_equal(unweighted[:4], keys[:4])


@pytest.mark.parametrize("n_classes", [2, 5])
def test_finds_the_nearest_output_of_the_same_labels(n_classes):
    rng = np.random.default_rng(0)
    keys = rng.integers(1, 4, 500)
    output = rng.dirichlet(np.ones(n_classes), 500)
    order = rng.permutation(500)
    rounded = output[order] + rng.uniform(-1e-7, 1e-7, output.shape)
    found = find_tasks(keys, output, keys[order], rounded)
    np.testing.assert_allclose(output[found], rounded, atol=1e-5)
    assert (found == order).mean() > 0.98
    assert (find_tasks(keys, output, keys % 3 + 1, output) < 0).mean() > 0.9
    assert (find_tasks(keys, output, keys, output + 1e-3) < 0).mean() > 0.7
    none = np.zeros(500, np.int64)
    assert (find_tasks(none, output, keys, output) == -1).all()
    assert (find_tasks(keys, output, none, output) == -1).all()


@pytest.mark.parametrize(
    "method",
    [
        DeepBP(module="linear", epochs=2),
        InstanceConfusion(
            module="linear", epochs=4, lr=0.1, variant="anchor", warm_up=2, threshold=0.4
        ),
    ],
    ids=lambda method: type(method).__name__,
)
def test_the_ids_of_tasks_do_not_matter_and_other_labels_make_a_new_task(method):
    X, votes = crowd()
    model = method.fit(X, votes, gold={3: 1})
    rows = np.array([7, 2, 30])
    np.testing.assert_allclose(model.predict_proba(X[rows], votes[rows]), model.probas_[rows])
    assert model.probas_[3].max() == 1.0
    new = model.predict_proba(X, np.roll(votes, 1, axis=1))
    assert np.abs(new - model.probas_).max() > 1e-3
    assert model.predict_proba(X[3:4], votes[3:4]).max() < 1.0  # gold is not given again
