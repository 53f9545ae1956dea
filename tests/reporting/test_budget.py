from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import Auto, DawidSkene
from wisecrowd.reporting.budget import budget
from wisecrowd.reporting.study import study_crowd


def test_the_present_is_the_mean_confidence(study):
    found = budget(study)
    now = next(p for p in found["points"] if p["labels"] == found["now"])
    assert now["confidence"] == pytest.approx(study.blind.confidence_.mean())
    assert now["measured"] == pytest.approx(study.right.mean())
    assert found["cost_per_label"] == pytest.approx(0.05)


def test_the_present_claim_is_the_confidence_under_the_label_law(study):
    fit = DawidSkene().fit(study.labels)
    found = budget(replace(study, fit=fit, blind=fit))
    now = next(p for p in found["points"] if p["labels"] == found["now"])
    assert now["claimed"] == pytest.approx(fit.confidence_.mean())


def test_confidence_follows_what_is_right_with_fewer_and_with_more_labels():
    """Auto claims less than is right of independent workers, by the same at every point."""
    workers = 30 * simulate.OneCoinWorkers(7, 3)
    crowd = simulate.crowd(1500, workers, simulate.PerTask(4), n_classes=3, random_state=0)
    study = study_crowd(crowd.labels, truth=dict(enumerate(crowd.truth.tolist())))
    points = budget(study)["points"]
    for point in points:
        if point["measured"] is not None:
            assert point["confidence"] == pytest.approx(point["measured"], abs=0.12)
    more = simulate.crowd(1500, workers, simulate.PerTask(8), n_classes=3, random_state=0)
    reached = Auto().fit(more.labels).score(more.labels, dict(enumerate(more.truth.tolist())))
    last = next(p for p in points if p["labels"] == 8)
    assert last["confidence"] == pytest.approx(reached, abs=0.12)
    values = [p["confidence"] for p in points]
    assert np.all(np.diff(values) > -0.01)
