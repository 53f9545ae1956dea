"""Findings about collapsed classifiers: detected where there is one, silent on healthy fits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import CCEM, AggNet, Raykar
from wisecrowd.learning.training.crowd_classifier import collapse_findings, plurality


def crowd(n=200, n_classes=4, shares=None, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_classes, n, p=shares)
    X = 2.5 * np.eye(n_classes)[truth] + rng.normal(size=(n, n_classes))
    wrong = rng.integers(n_classes, size=(n, 3))
    return X, np.where(rng.random((n, 3)) < 0.75, truth[:, None], wrong), truth


def labels_of(votes):
    n, per_task = votes.shape
    task, worker = np.divmod(np.arange(votes.size), per_task)
    return CrowdLabels.from_arrays(task, worker, votes.ravel(), tasks=list(range(n)))


def ids(findings):
    return [finding.id for finding in findings]


def test_plurality_leaves_out_ties_and_counts_weights():
    columns = [0, 0, 0, 1, 1, 2], list("abcabc"), [1, 1, 0, 0, 1, 1]
    labels = CrowdLabels.from_arrays(*columns, tasks=range(4))
    assert [part.tolist() for part in plurality(labels)] == [[0, 2], [1, 1]]
    weighted = CrowdLabels.from_arrays(*columns, tasks=range(4), weight=[1, 1, 3, 1, 2, 0])
    assert [part.tolist() for part in plurality(weighted)] == [[0, 1], [0, 1]]


def test_one_class_for_everything_is_a_collapse_unless_the_vote_agrees():
    _, votes, truth = crowd()
    constant = np.tile(np.log([0.4, 0.2, 0.2, 0.2]), (len(truth), 1))
    assert ids(collapse_findings(constant, truth, labels_of(votes), None)) == [
        "collapsed-classifier"
    ]
    _, skewed, truth = crowd(shares=[0.97, 0.01, 0.01, 0.01])
    skewed = np.where(truth[:, None] == 0, 0, skewed)
    assert not collapse_findings(constant, truth, labels_of(skewed), None)


def test_a_class_that_is_never_predicted_is_named():
    _, votes, truth = crowd()
    log_probas = np.log(np.full((len(truth), 4), 0.1) + 0.6 * np.eye(4)[truth])
    assert not collapse_findings(log_probas, truth, labels_of(votes), None)
    log_probas[:, 2] = -9.0
    (found,) = collapse_findings(log_probas, truth, labels_of(votes), None)
    assert (found.id, found.affected) == ("class-never-predicted", (2,))
    _, votes, truth = crowd(shares=[0.5, 0.48, 0.01, 0.01])  # a rare class is no reason
    votes = np.where(truth[:, None] < 2, np.minimum(votes, 1), votes)
    assert not collapse_findings(log_probas, truth, labels_of(votes), None)


@pytest.mark.parametrize(
    ("changed", "gain", "expected"),
    [(0.5, (0.001, 0.01), 1), (0.5, (0.3, 0.01), 0), (0.1, (0.0, 0.01), 0), (0.5, None, 0)],
)
def test_overruling_the_vote_needs_evidence(changed, gain, expected):
    _, votes, truth = crowd()
    votes = np.repeat(truth[:, None], 3, axis=1)
    codes = np.where(np.arange(len(truth)) < changed * len(truth), (truth + 1) % 4, truth)
    log_probas = np.log(np.full((len(truth), 4), 0.1) + 0.6 * np.eye(4)[truth])
    found = collapse_findings(log_probas, codes, labels_of(votes), gain)
    assert ids(found) == ["overruled-without-evidence"] * expected


class Stubborn(torch.nn.Linear):
    def forward(self, x):
        return 0 * super().forward(x) + torch.tensor([9.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("method", [CCEM, AggNet])
def test_fits_report_a_collapse_and_healthy_fits_report_nothing(method):
    X, votes, _ = crowd()
    options = {"epochs": 15, "lr": 0.05}
    assert not method(module="linear", **options).fit(X, votes).findings_
    with pytest.warns(WisecrowdWarning, match="collapsed"):
        fitted = method(module=Stubborn(4, 4), **options).fit(X, votes)
    assert ids(fitted.findings_) == ["collapsed-classifier"]


def test_methods_without_torch_are_checked_too():
    X, votes, _ = crowd()
    assert not Raykar().fit(X, votes).findings_
    with pytest.warns(WisecrowdWarning, match="collapsed"):
        Raykar().fit(np.zeros_like(X), votes)
