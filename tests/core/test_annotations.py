"""What every container of annotations has, shown by two that are declared here."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from wisecrowd import CrowdLabels
from wisecrowd.core.annotations import Annotations, Payload
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sets(Annotations):
    """A set of members per annotation: ragged, and codes of a vocabulary."""

    payload: ClassVar[tuple[Payload, ...]] = (
        Payload("member", vocabulary="members", pointer="member_pointer"),
    )
    member: NDArray[np.int32]
    member_pointer: NDArray[np.int64]
    members: NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Points(Annotations):
    """Two numbers per annotation."""

    payload: ClassVar[tuple[Payload, ...]] = (Payload("x"), Payload("y", usual=("y", "height")))
    x: NDArray[np.float64]
    y: NDArray[np.float64]


@pytest.fixture
def sets():
    return Sets(
        task=np.array([0, 0, 1, 2], np.int32),
        worker=np.array([0, 1, 0, 1], np.int32),
        tasks=np.array(["t1", "t2", "t3"], object),
        workers=np.array(["ann", "bob"], object),
        member=np.array([0, 1, 1, 2, 0], np.int32),
        member_pointer=np.array([0, 2, 2, 4, 5]),
        members=np.array(["p", "q", "r"], object),
        task_columns={"size": np.array([1.0, 2.0, 3.0])},
        worker_columns={"kind": np.array(["human", "model"], object)},
    )


def members(data: Sets) -> list[list[str]]:
    return [values.tolist() for values in data.to_dict()["member"]]


def test_ragged_parts_are_selected_with_their_annotations(sets):
    assert members(sets) == [["p", "q"], [], ["q", "r"], ["p"]]
    part = sets[[2, 0]]
    assert members(part) == [["p"], ["p", "q"], []]
    assert part.member_pointer.tolist() == [0, 1, 3, 3]
    assert part.tasks.tolist() == ["t3", "t1"]
    assert part.task_columns["size"].tolist() == [3, 1]
    assert part.rows.tolist() == [2, 0]
    assert members(sets.select_annotations(sets.worker == 1)) == [[], ["p"]]
    assert members(sets[[]]) == []


def test_workers_are_selected_with_their_columns(sets):
    turned = sets.select_workers(np.array([1, 0]))
    assert turned.workers.tolist() == ["bob", "ann"]
    assert turned.worker_kind.tolist() == ["model", "human"]
    assert turned.worker.tolist() == [0, 1, 1, 0]
    assert members(turned) == [[], ["p", "q"], ["q", "r"], ["p"]]
    alone = sets.select_workers(np.array([1]))
    assert alone.n_tasks == 3
    assert alone.labels_per_task.tolist() == [1, 0, 1]


def test_everything_is_frozen_and_travels(sets):
    assert repr(sets) == "Sets(3 tasks, 2 workers, 3 members, 4 annotations)"
    again = pickle.loads(pickle.dumps(sets))
    assert members(again) == members(sets)
    assert again.task_columns["size"].tolist() == [1, 2, 3]
    for array in (again.member, again.member_pointer, again.members, again.task_columns["size"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    with pytest.raises(TypeError):
        again.worker_columns["age"] = np.zeros(2)


def test_numbers_are_read_from_columns_and_frames():
    columns = ["t2", "t1", "t2"], ["b", "a", "a"], [1.5, 2, 3], ["4", "$5", "6"]
    points = Points.from_arrays(*columns, weight=[1, 2, 3])
    assert points.x.tolist() == [2, 3, 1.5]
    assert points.y.tolist() == [5, 6, 4]
    assert points.weight.tolist() == [2, 3, 1]
    frame = dict(zip(("item", "worker", "x", "height"), columns, strict=True))
    framed = Points.from_frame(frame)
    assert framed.y.tolist() == points.y.tolist()
    assert framed.notes == ("columns recognised: task = 'item', y = 'height'",)
    assert Points.coerce(frame).x.tolist() == Points.coerce(columns).x.tolist()
    assert Points.coerce(points) is points


def test_rows_that_repeat_a_pair_have_an_order_of_their_own():
    task, worker, x = np.zeros(4, int), np.zeros(4, int), np.array([3.0, 1.0, 2.0, 1.0])
    y = np.array([1.0, 2.0, 1.0, 0.5])
    rows = [[0, 1, 2, 3], [3, 0, 2, 1]]
    kept = [Points.from_arrays(task, worker, x[r], y[r], duplicates="keep") for r in rows]
    assert kept[0].x.tolist() == kept[1].x.tolist() == [1, 1, 2, 3]
    assert kept[0].y.tolist() == kept[1].y.tolist() == [0.5, 2, 1, 1]
    with pytest.raises(DataError, match="same worker labelled the same task in rows 1, 2"):
        Points.from_arrays(task, worker, x, y, duplicates="error")


def test_what_is_missing_is_named():
    with pytest.raises(ParameterError, match="Points need the column y"):
        Points.from_arrays([1], [1], [1.0])
    with pytest.raises(DataError, match="y column is empty or NaN in row 2"):
        Points.from_arrays([1, 2], [1, 1], [1.0, 2.0], [1.0, None])
    with pytest.raises(DataError, match=r"No column looks like the y: .* one of y, height"):
        Points.from_frame({"task": [1], "worker": [1], "x": [1.0]})
    with pytest.raises(ParameterError, match="Unknown column 'colour'"):
        Points.from_arrays([1], [1], [1.0], [1.0], colour=["red"])


def test_a_column_too_many_is_refused():
    columns = [1], [1], [1.0], [2.0], [3.0]
    for build in (lambda: Points.from_arrays(*columns), lambda: Points.coerce(columns)):
        with pytest.raises(DataError, match="the columns task, worker, x, y, and 5 columns are"):
            build()


def test_ids_that_look_the_same_are_told():
    with pytest.warns(WisecrowdWarning, match="'Ann' and 'ann' count as different workers"):
        points = Points.from_arrays([1, 1], ["ann", "Ann"], [1.0, 2.0], [1.0, 2.0])
    assert len(points.notes) == 1


def test_annotations_of_another_kind_are_refused(sets):
    labels = CrowdLabels.from_arrays([1], [1], ["a"])
    with pytest.raises(DataError, match="The data are CrowdLabels, and Points are needed"):
        Points.coerce(labels)
    with pytest.raises(DataError, match="The data are Sets, and CrowdLabels are needed"):
        CrowdLabels.coerce(sets)


def test_labels_keep_their_constructor_and_their_kinds_of_workers():
    codes = np.zeros(1, np.int32)
    ids = np.array(["a"], object)
    kind = np.array(["model"], object)
    labels = CrowdLabels(codes, codes, codes, ids, ids, ids, None, {}, kind, ("note",))
    assert labels.worker_kind is labels.worker_columns["kind"]
    assert labels.notes == ("note",)
    assert not labels.ordered
    graded = CrowdLabels.from_arrays([1, 1], [1, 2], ["b", "a"], classes=["b", "a"], ordered=True)
    assert graded.ordered
    assert pickle.loads(pickle.dumps(graded[[0]])).ordered
