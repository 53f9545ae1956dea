"""Metamorphic relations as properties of crowds that hypothesis makes up.

``make test-deep`` runs them with a thousand crowds each, and on all methods.
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.relations import RELATIONS, compare

from wisecrowd import CrowdLabels
from wisecrowd.aggregation import DawidSkene
from wisecrowd.core.exceptions import WisecrowdError
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.kinds.classes.families.moments.moment_method import MomentMethod
from wisecrowd.testing import maker
from wisecrowd.testing.crowds import simulated
from wisecrowd.testing.foundation import ROUNDING

pytestmark = pytest.mark.filterwarnings("ignore::wisecrowd.core.exceptions.WisecrowdWarning")
QUICK = ("majority-vote", "wawa", "dawid-skene", "one-coin")
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
# Moment methods look for corners and groups of a cloud, which in a handful of random labels tie.
ALL = [name for name in method_names() if not issubclass(get_method(name), MomentMethod)]
METHODS = ALL if DEEP else QUICK


@st.composite
def crowds(draw, n_classes):
    """Crowds of up to ten tasks and five workers, in which somebody labels every task."""
    n, j = draw(st.integers(2, 10)), draw(st.integers(2, 5))
    cell = st.one_of(st.none(), st.integers(0, n_classes - 1))
    table = draw(st.lists(st.lists(cell, min_size=j, max_size=j), min_size=n, max_size=n))
    first = draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n))
    rows = [
        (i, w, label)
        for i, row in enumerate(table)
        for w, label in enumerate([first[i], *row[1:]])
        if label is not None
    ]
    return CrowdLabels.from_arrays(
        *zip(*rows, strict=True), tasks=range(n), workers=range(j), classes=range(n_classes)
    )


def difference(name, relation, labels, seed):
    """Fit both sides, or return None where the method refuses or promises nothing."""
    try:
        return compare(maker(get_method(name)), relation, labels, np.random.default_rng(seed))
    except WisecrowdError:
        return None


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
@given(data=st.data(), name=st.sampled_from(METHODS), seed=st.integers(0, 1000))
def test_nothing_new_changes_nothing(relation, data, name, seed):
    labels = data.draw(crowds(2 if get_method(name)().tags().binary else 3))
    found = difference(name, relation, labels, seed)
    if found is None:
        return
    assert found.bits or not relation.same_bits
    assert found.probas <= ROUNDING
    assert found.labels == 0


class Broken(DawidSkene):
    def _fit(self, problem):
        result = super()._fit(problem)
        probas = result.probas + 1e-6 * self.shift(problem.data)
        return replace(result, answers=probas / probas.sum(axis=1, keepdims=True))


class LikesFirstTask(Broken):
    def shift(self, labels):
        return np.eye(labels.n_tasks, labels.n_classes)


class LikesFirstClass(Broken):
    def shift(self, labels):
        return np.eye(labels.n_classes)[0]


class LikesText(Broken):
    def shift(self, labels):
        return np.eye(labels.n_classes)[0] * (labels.tasks.dtype == object)


class CountsRows(Broken):
    def shift(self, labels):
        return np.eye(labels.n_classes)[labels.n_annotations % 2]


class LikesLateTasks(Broken):
    def shift(self, labels):
        return np.outer(np.arange(labels.n_tasks), np.eye(labels.n_classes)[0])


class LikesFirstWorker(Broken):
    def shift(self, labels):
        liked = np.zeros((labels.n_tasks, labels.n_classes))
        mine = labels.worker == 0
        liked[labels.task[mine], labels.label[mine]] = 1.0
        return liked


@pytest.mark.parametrize(
    ("method", "name"),
    [
        (LikesFirstTask, "renaming of tasks"),
        (LikesFirstWorker, "renaming of workers"),
        (LikesFirstClass, "renaming of classes"),
        (LikesText, "encoding of ids"),
        (LikesLateTasks, "a disjoint copy"),
        (CountsRows, "whole weights as repetition"),
    ],
)
def test_a_broken_method_is_noticed(method, name):
    relation = next(relation for relation in RELATIONS if relation.name == name)
    labels = simulated(21, 5, 3, 3).labels
    sound = compare(maker(DawidSkene), relation, labels, np.random.default_rng(0))
    assert sound.probas <= ROUNDING
    broken = compare(maker(method), relation, labels, np.random.default_rng(0))
    assert broken.probas > ROUNDING
    assert not broken.bits


def test_methods_promise_what_their_tags_say():
    labels = simulated(10, 4, 3, 3).labels
    renaming = next(relation for relation in RELATIONS if relation.name == "renaming of tasks")
    order = next(relation for relation in RELATIONS if relation.name == "row order")
    assert difference("ebcc", renaming, labels, 0) is None
    assert difference("ebcc", order, labels, 0).bits
