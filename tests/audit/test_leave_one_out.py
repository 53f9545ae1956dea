"""The posterior without a worker's label, against a fit's prediction without that label."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import DawidSkene
from wisecrowd.audit.leave_one_out import leave_one_out_posteriors


@pytest.mark.parametrize("weighted", [False, True])
def test_belief_is_the_prediction_from_the_other_labels(weighted):
    made = simulate.crowd(60, 6 * simulate.OneCoinWorkers(8, 2), n_classes=3).labels
    table = made.to_dict()
    weight = np.random.default_rng(0).integers(1, 4, made.n_annotations) if weighted else None
    labels = CrowdLabels.from_arrays(table["task"], table["worker"], table["label"], weight=weight)
    fit = DawidSkene().fit(labels)
    for one in leave_one_out_posteriors(labels, fit.label_law(), 5):
        without = labels.select_annotations(labels.worker != one.worker)
        expected = fit.predict_proba(without)[labels.task[one.rows]]
        np.testing.assert_allclose(one.belief, expected, atol=1e-9)
        assert (labels.worker[one.rows] == one.worker).all()


def test_only_tasks_that_others_labelled_count():
    labels = CrowdLabels.from_arrays(
        [1, 1, 2, 2, 3, 4], ["a", "b", "a", "b", "a", "a"], [0, 0, 1, 1, 0, 1]
    )
    law = DawidSkene().fit(labels).label_law()
    assert [(one.worker, len(one.rows)) for one in leave_one_out_posteriors(labels, law, 2)] == [
        (0, 2),
        (1, 2),
    ]
    assert list(leave_one_out_posteriors(labels, law, 3)) == []
