"""Models around a network: where matrices start, likelihood of labels, targets, gold, features."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from wisecrowd.aggregation import DawidSkene
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import (
    ConfusionModel,
    CrowdModel,
    TargetModel,
    TrunkModel,
    check_start,
    confusion_head,
    start_table,
    with_gold_loss,
)
from wisecrowd.nn.heads import SoftmaxConfusion

TABLE = np.array([[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]]])


def uniform():
    """Return a network whose class probabilities are one half, and can be trained."""
    network = nn.Linear(2, 2)
    nn.init.zeros_(network.weight)
    nn.init.zeros_(network.bias)
    return network


def data_of(gold=(-1, -1)):
    labels = CrowdLabels.from_matrix(np.array([[0, 1], [1, 1]]))
    return CrowdData(np.eye(2), labels, np.array(gold))


def test_a_label_is_as_likely_as_classifier_and_table_make_it():
    batch = data_of().batch(torch.arange(2))
    model = ConfusionModel(uniform(), SoftmaxConfusion(2, 2, table=TABLE))
    # worker 0 says 0, worker 1 says 1; then both say 1
    expected = np.log([(0.9 + 0.3) / 2, (0.4 + 0.8) / 2, (0.1 + 0.7) / 2, (0.4 + 0.8) / 2])
    np.testing.assert_allclose(model.label_log_probas(batch).detach(), expected, rtol=1e-5)
    assert CrowdModel(uniform()).label_log_probas(batch) is None  # it has no tables


def test_only_parameters_outside_the_network_belong_to_the_crowd():
    model = ConfusionModel(uniform(), SoftmaxConfusion(2, 2))
    assert [id(p) for p in model.crowd_parameters()] == [id(model.head.by_label)]


def test_gold_adds_the_cross_entropy_of_the_known_tasks_alone():
    log_probas = torch.tensor([[0.25, 0.75], [0.5, 0.5]]).log()
    known = data_of(gold=(1, -1)).batch(torch.arange(2))
    loss = with_gold_loss(torch.tensor(2.0), log_probas, known)
    assert float(loss) == pytest.approx(2 - math.log(0.75))
    unknown = data_of().batch(torch.arange(2))
    assert float(with_gold_loss(torch.tensor(2.0), log_probas, unknown)) == 2.0


def test_targets_are_what_the_loss_pulls_to_and_gold_stays():
    data = data_of(gold=(1, -1))
    model = TargetModel(uniform(), torch.zeros(2, 2))
    model.set_targets(np.array([[1.0, 0.0], [0.2, 0.8]]), data)
    np.testing.assert_allclose(model.targets, [[0, 1], [0.2, 0.8]])
    log_probas = torch.tensor([[0.25, 0.75], [0.5, 0.5]]).log()
    loss = model.crowd_loss(log_probas, data.batch(torch.arange(2)))
    assert float(loss) == pytest.approx(-(math.log(0.75) + math.log(0.5)) / 2)


def test_a_trunk_model_reads_the_features_before_the_last_layer_in_one_pass():
    runs = []

    class Counting(nn.Module):
        def forward(self, x):
            runs.append(len(x))
            return 3 * x

    class SumOfFeatures(TrunkModel):
        def feature_loss(self, log_probas, features, batch):
            return features.sum()

    model = SumOfFeatures(nn.Sequential(Counting(), uniform()))
    batch = data_of(gold=(0, -1)).batch(torch.arange(2))
    assert float(model.loss(batch).detach()) == pytest.approx(
        6 + math.log(2)
    )  # gold counts as well
    assert runs == [2]
    log_probas, features = model.outputs(batch)
    np.testing.assert_allclose(log_probas.detach(), np.log(0.5) * np.ones((2, 2)), rtol=1e-6)
    np.testing.assert_allclose(features, 3 * np.eye(2))


@pytest.mark.parametrize(
    ("cls", "name"), [(CrowdModel, "crowd_loss"), (TrunkModel, "feature_loss")]
)
def test_a_model_without_a_loss_says_what_it_lacks(cls, name):
    with pytest.raises(TypeError, match=f"must define {name}"):
        cls(uniform()).loss(data_of().batch(torch.arange(2)))


VOTES = np.random.default_rng(0).integers(3, size=(30, 4))
LABELS = CrowdLabels.from_matrix(VOTES)


@pytest.mark.parametrize("kind", ["softmax", "softplus"])
@pytest.mark.parametrize("start", [0.7, "dawid-skene", "table"])
def test_heads_start_where_they_are_told(kind, start):
    tables = np.random.default_rng(1).dirichlet(np.ones(3), (4, 3))
    expected = {
        0.7: np.broadcast_to(0.55 * np.eye(3) + 0.15, (4, 3, 3)),
        "dawid-skene": DawidSkene().fit(LABELS).confusion_,
        "table": tables,
    }[start]
    head = confusion_head(kind, LABELS, tables if start == "table" else start)
    np.testing.assert_allclose(head.table().detach(), expected, atol=5e-6)


def test_nothing_is_the_heads_own_start():
    assert start_table(LABELS, None) is None
    assert confusion_head("softplus", LABELS).table()[0, 0, 0] > 0.9


def test_what_cannot_be_a_start_is_refused():
    with pytest.raises(ParameterError, match="no confusion matrices"):
        start_table(LABELS, "majority-vote")
    with pytest.raises(ParameterError, match=r"shape \(4, 3, 3\)"):
        start_table(LABELS, np.ones((2, 3, 3)) / 3)
    with pytest.raises(ParameterError, match="no method 'dawid-sken'"):
        check_start("dawid-sken")
    with pytest.raises(ParameterError, match="start is 0"):
        check_start(0)


def test_one_class_has_one_table():
    labels = CrowdLabels.from_arrays([0, 1], [0, 0], ["a", "a"])
    assert start_table(labels, 0.7).tolist() == [[[1.0]]]
