"""Labels after a moment are left out, and bad requests are refused in one sentence."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels
from wisecrowd.audit import drop_after
from wisecrowd.core.exceptions import DataError, ParameterError

TIMES = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]


def crowd(**more):
    return CrowdLabels.from_arrays(list("aabb"), list("xyxy"), list("pqpp"), **more)


def test_labels_after_the_moment_go_and_the_others_stay():
    rest = drop_after(crowd(timestamp=TIMES), {"y": "2026-01-02"})
    assert rest.to_dict()["task"].tolist() == ["a", "a", "b"]
    assert rest.columns["timestamp"].max() == np.datetime64("2026-01-03")


def test_a_task_without_labels_goes_too():
    rest = drop_after(crowd(timestamp=[1, 2, 3, 4]), {"x": 1, "y": 2})
    assert rest.tasks.tolist() == ["a"]


@pytest.mark.parametrize(
    ("columns", "moments", "error", "says"),
    [
        ({}, {"x": 1}, DataError, "no timestamps"),
        ({"timestamp": TIMES}, {"z": TIMES[0]}, ParameterError, "no worker 'z'"),
        ({"timestamp": TIMES}, {"x": 5}, ParameterError, "write it like the timestamps"),
        ({"timestamp": TIMES}, {"x": "soon"}, ParameterError, "write it like the timestamps"),
        ({"timestamp": [1, 2, 3, 4]}, {"x": 0, "y": 0}, DataError, "No label would remain"),
    ],
)
def test_refused(columns, moments, error, says):
    with pytest.raises(error, match=says):
        drop_after(crowd(**columns), moments)
