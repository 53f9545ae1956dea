"""Results on few labels that hold without the help of a finding."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.testing.few_labels import single_labels

# Workers have parameters for each class that nothing ties to agreement with others.
CHANGES_SINGLE_LABELS = {"confusion-vector", "minimax-entropy"}
# The likelihood has equally good optima in which either worker is right.
PREFERS_A_WORKER = {"mace", "coupled-tensor"}


@pytest.mark.parametrize("name", sorted(set(method_names()) - CHANGES_SINGLE_LABELS))
def test_single_labels_are_the_result(name):
    for n_classes in (2, 4):
        for accuracy in (1.0, 0.8):
            for labels in single_labels(n_classes, accuracy):
                try:
                    fitted = get_method(name)().fit(labels)
                except DataError:  # a method for two classes
                    assert n_classes > 2
                    continue
                np.testing.assert_array_equal(fitted.labels_, labels.label)


@pytest.mark.parametrize("name", sorted(set(method_names()) - PREFERS_A_WORKER))
@pytest.mark.parametrize("given", [[[0, 1]], [[0, 1], [0, 1]], [[0, 1], [1, 0]]], ids=str)
def test_one_against_one_is_a_tie(name, given):
    fitted = get_method(name)().fit(CrowdLabels.from_matrix(given))
    np.testing.assert_allclose(np.asarray(fitted.probas_), 0.5, atol=0.02)
    assert fitted.ties_.all() or fitted.tags().stochastic
