"""Audit of masks: who marks more, less or something else than the others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import binary_dilation, binary_erosion

from wisecrowd import simulate
from wisecrowd.audit.crowd_audit import audit_crowd
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.classes.audit.pruning import require_prunable
from wisecrowd.kinds.masks.audit import find_extents, mask_view, measure_mask_agreement
from wisecrowd.kinds.masks.container import CrowdMasks
from wisecrowd.kinds.masks.metrics import mask_iou


def crowd(**options):
    plain = {"offset": 0.0, "miss": 0.1, "random_state": 3} | options
    return simulate.masks(16, 7, simulate.PerTask(5), height=40, width=36, **plain).data


def changed(data: CrowdMasks, worker: int, move) -> CrowdMasks:
    masks = [
        move(data.dense(e)) if data.worker[e] == worker else data.dense(e)
        for e in range(data.n_annotations)
    ]
    return CrowdMasks.from_arrays(data.task, data.worker, masks)


def test_the_view_by_brute_force():
    data = crowd(miss=0.5, n_objects=1)
    view = mask_view(data)
    for e in range(data.n_annotations):
        others = [o for o in np.flatnonzero(data.task == data.task[e]).tolist() if o != e]
        iou = np.mean([mask_iou(data.dense(e), data.dense(o)) for o in others])
        assert view.iou[e] == pytest.approx(iou)
        area = sorted(int(data.area[o]) for o in others if data.area[o] > 0)
        if data.area[e] == 0 or len(area) < 2:
            assert np.isnan(view.extent[e])
            continue
        low, high = area[(len(area) - 1) // 2], area[len(area) // 2]
        nearer = min(max(int(data.area[e]), low), high)
        assert view.extent[e] == pytest.approx(np.log(data.area[e] / nearer))


def test_equal_workers_have_no_findings():
    for seed in range(4):
        assert not audit_crowd(crowd(random_state=seed)).findings


@pytest.mark.parametrize(
    ("change", "times", "name"),
    [(binary_dilation, 3, "wide-masks"), (binary_erosion, 2, "tight-masks")],
)
def test_wide_and_tight_workers(change, times, name):
    report = find_extents(changed(crowd(), 2, lambda mask: change(mask, iterations=times)))
    (found,) = report.findings()
    assert (found.id, found.affected) == (name, (2,))
    assert (report.ratio[2] > 1.2) == (change is binary_dilation)
    assert report.low[2] < report.ratio[2] < report.high[2]


def test_a_worker_who_marks_something_else():
    data = changed(crowd(), 4, lambda mask: np.roll(mask, (17, 15), (0, 1)))
    report = measure_mask_agreement(data)
    (found,) = report.findings()
    assert (found.id, found.affected) == ("masks-apart", (4,))
    assert np.nanmin(report.task_iou) < report.mean < np.nanmax(report.task_iou)


def test_a_crowd_that_marks_different_things():
    rng = np.random.default_rng(0)
    masks = [rng.random((12, 12)) < 0.2 for _ in range(30)]
    data = CrowdMasks.from_arrays(np.repeat(np.arange(10), 3), np.tile(np.arange(3), 10), masks)
    assert [one.id for one in measure_mask_agreement(data).findings()] == ["low-overlap"]


def test_what_cannot_be_compared_is_said():
    alone = simulate.masks(6, 3, simulate.PerTask(1)).data
    for part in (find_extents, measure_mask_agreement):
        with pytest.raises(NotApplicable):
            part(alone)
    with pytest.raises(ParameterError, match="not removed from masks by an audit"):
        require_prunable(alone, ["spammers"])
