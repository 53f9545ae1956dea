from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from wisecrowd.datasets import anaesthetists


@pytest.fixture(scope="module")
def labels():
    return anaesthetists()


def ratings(labels, patient):
    """Return the sorted (observer, class) pairs of a patient in the published numbers."""
    mine = labels.tasks[labels.task] == patient
    return sorted(
        zip(
            labels.workers[labels.worker[mine]].tolist(),
            labels.classes[labels.label[mine]].tolist(),
            strict=True,
        )
    )


def test_has_every_rating_of_the_published_table(labels):
    assert labels.n_annotations == 315
    assert labels.tasks.tolist() == list(range(1, 46))
    assert labels.workers.tolist() == [1, 2, 3, 4, 5]
    assert labels.classes.tolist() == [1, 2, 3, 4]


def test_observer_one_rated_everybody_three_times_and_the_others_once(labels):
    assert Counter(labels.workers[labels.worker].tolist()) == {1: 135, 2: 45, 3: 45, 4: 45, 5: 45}
    assert np.all(np.bincount(labels.task) == 7)


@pytest.mark.parametrize(
    ("patient", "first", "others"),
    [
        (1, (1, 1, 1), (1, 1, 1, 1)),
        (2, (3, 3, 3), (4, 3, 3, 4)),
        (3, (1, 1, 2), (2, 1, 2, 2)),
        (10, (2, 3, 2), (2, 2, 2, 3)),
        (12, (2, 2, 2), (3, 3, 4, 3)),
        (20, (2, 2, 2), (1, 3, 2, 2)),
        (36, (4, 3, 3), (4, 3, 4, 3)),
        (45, (2, 2, 2), (2, 2, 2, 2)),
    ],
)
def test_rows_are_those_of_the_paper(labels, patient, first, others):
    expected = [(1, rating) for rating in first] + list(zip((2, 3, 4, 5), others, strict=True))
    assert ratings(labels, patient) == sorted(expected)


def test_totals_per_class(labels):
    totals = Counter(labels.classes[labels.label].tolist())
    assert totals == {1: 127, 2: 125, 3: 48, 4: 15}
