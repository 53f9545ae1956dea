"""BinaryRelevance: the wrapped method, class by class."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation import BinaryRelevance, DawidSkene, SetVote
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.sets.checks import example as small_sets
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.methods.base import WorkerSets, set_sizes


def test_every_class_is_a_fit_of_the_method():
    data = small_sets(None)
    fitted = BinaryRelevance(DawidSkene()).fit(data)
    for k in range(data.n_classes):
        alone = DawidSkene().fit(data.to_labels(k))
        assert np.array_equal(fitted.members_[:, k], alone.labels_ == "in")
        assert np.array_equal(fitted.methods_[k].probas_, alone.probas_)


def test_votes_of_each_class_are_the_set_vote():
    data = small_sets(None)
    odd = data.select_annotations(np.arange(data.n_annotations) % 4 > 0)  # three per task
    votes, wrapped = SetVote().fit(odd), BinaryRelevance("majority-vote").fit(odd)
    assert np.array_equal(votes.members_, wrapped.members_)


def test_only_methods_for_classes_can_be_wrapped():
    with pytest.raises(ParameterError, match="give a method for classes"):
        BinaryRelevance("set-vote").fit(small_sets(None))


def test_set_sizes_are_compared_on_the_same_tasks():
    data = CrowdSets.from_arrays(
        ["s", "s", "t", "t", "u"], list("abaca"), ["x", "x|y|z", "", "x|y", "x|y|z"]
    )
    size, crowd = set_sizes(data)
    assert size == pytest.approx([4 / 3, 3, 2])
    assert crowd == pytest.approx([(3 + 2) / 2, 1, 0])  # task u has no other worker


def test_rates_of_workers_against_certain_sets():
    data = CrowdSets.from_arrays(["s", "t"], ["a", "a"], ["x|y", "y"], classes=list("xyz"))
    truth = np.array([[1.0, 0, 0], [1, 1, 0]])
    found = WorkerSets.of(data, truth)
    assert found.accuracy == pytest.approx([4 / 6])
    # Two of three classes are ticked, one of three is a false alarm; a pseudo-label each.
    overall = (2 + 4) / (3 + 5), (1 + 1) / (3 + 5)
    assert found.sensitivity == pytest.approx([(2 + overall[0]) / 4])
    assert found.false_alarm == pytest.approx([(1 + overall[1]) / 4])
