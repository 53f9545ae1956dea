"""BoxConsensus: hand cases of votes, sides, classes and the worker table."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import BoxConsensus, BoxEM
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.boxes.container import CrowdRegions

WORKERS = ["ann", "bob", "cem", "dan", "eve"]


def image(*boxes, label=None, n_seen=5):
    """Return one image: boxes as (worker, x, y, width, height), and empty looks of the others."""
    drew = {box[0] for box in boxes}
    rows = [(*box, label or "thing") if len(box) == 5 else box for box in boxes]
    rows += [(one, *[None] * 5) for one in WORKERS[:n_seen] if one not in drew]
    worker, x, y, width, height, names = (list(column) for column in zip(*rows, strict=True))
    return CrowdRegions.from_arrays(["a"] * len(rows), worker, x, y, width, height, names)


def test_objects_need_two_of_five_votes():
    two = [("ann", 0, 0, 10, 10), ("bob", 0, 0, 10, 10)]
    model = BoxConsensus().fit(image(*two))
    assert model.n_boxes_.tolist() == [1]
    assert model.box_share_.tolist() == [0.4]
    assert model.box_confidence_[0] >= 2.5 / 6
    assert BoxConsensus(threshold=0.5).fit(image(*two)).n_boxes_.tolist() == [0]
    assert BoxConsensus().fit(image(two[0])).n_boxes_.tolist() == [0]
    # Without the looks of those who drew nothing, the same boxes are unanimous.
    assert BoxConsensus().fit(image(*two, n_seen=2)).box_share_.tolist() == [1.0]


def test_sides_are_medians_of_their_own():
    boxes = [("ann", 0, 0, 10, 10), ("bob", 1, 0, 10, 11), ("cem", 2, 1, 7, 10)]
    model = BoxConsensus(corners="median").fit(image(*boxes))
    assert model.boxes_.tolist() == [[1, 0, 9, 11]]  # left 1, top 0, right 10, bottom 11


def test_the_confidence_is_the_larger_of_model_and_votes():
    made = simulate.boxes(60, 10, simulate.PerTask(4), miss=0.3, phantoms=0.5, random_state=2)
    model, em = BoxConsensus().fit(made.data), BoxEM(threshold=0.0).fit(made.data)
    assert model.draws_phantom_ == pytest.approx(em.draws_phantom_)
    boxes, more = (fit.boxes_.round(6).tolist() for fit in (model, em))
    claims = dict(zip(map(tuple, more), em.box_confidence_, strict=True))
    votes = (4 * model.box_share_ + 0.5) / 5
    expected = np.maximum([claims[tuple(box)] for box in boxes], votes)
    assert model.box_confidence_ == pytest.approx(expected)
    assert (model.box_confidence_ > votes).any()
    assert (model.box_confidence_ == votes).any()


def test_one_of_two_says_one_half_and_the_model_of_phantoms_leaves_it_out():
    data = image(("ann", 0, 0, 10, 10), n_seen=2)
    assert BoxConsensus().fit(data).box_confidence_ == pytest.approx([0.5])
    assert BoxEM().fit(data).n_boxes_.tolist() == [0]


def test_two_boxes_of_one_worker_are_two_objects():
    near = [(w, x, 0, 10, 10) for w in ("ann", "bob", "cem") for x in (0, 2)]
    assert BoxConsensus().fit(image(*near)).boxes_[:, 0].tolist() == [0, 2]


def test_classes_are_voted_on_or_separate_objects():
    boxes = [("ann", 0, 0, 9, 9, "car"), ("bob", 0, 0, 9, 9, "car"), ("cem", 0, 0, 9, 9, "bus")]
    model = BoxConsensus().fit(image(*boxes))
    assert model.main_columns()["label"].tolist() == ["car"]
    model_alone = BoxEM().fit(image(*boxes)).box_confidence_[0]  # times the share of the class
    assert model.box_confidence_[0] == pytest.approx(max(model_alone, 3.5 / 6 * 2.5 / 4))
    apart = BoxConsensus(same_class=True, threshold=0.0).fit(image(*boxes))
    assert sorted(apart.main_columns()["label"].tolist()) == ["bus", "car"]


def test_workers_are_judged_by_the_others():
    boxes = [(w, 0, 0, 10, 10) for w in WORKERS[:3]] + [("dan", 50, 50, 10, 10)]
    model = BoxConsensus().fit(image(*boxes))
    table = model.worker_columns()
    # Two of four others drew the object that ann drew, three of four that of dan and eve.
    assert table["n_judged"].tolist() == [1, 1, 1, 1, 1]
    rate = table["detection_rate"]
    assert (rate[:3] > 0.75).all()
    assert (rate[3:] < 0.5).all()
    assert table["phantoms_per_image"].tolist() == [0, 0, 0, 1, 0]


def test_nobody_confirms_his_own_box():
    model = BoxConsensus().fit(image(("ann", 0, 0, 10, 10), n_seen=2))
    assert model.box_share_.tolist() == [0.5]
    assert model.phantoms_per_image_.tolist() == [1, 0]
    assert model.n_judged_.tolist() == [0, 1]  # bob missed what the only other one drew
    alone = BoxConsensus().fit(image(("ann", 0, 0, 10, 10), n_seen=1))
    assert (alone.n_judged_.tolist(), alone.phantoms_per_image_.tolist()) == ([0], [0])


def test_assignments_name_every_box_and_every_miss():
    boxes = [(w, 0, 0, 10, 10) for w in WORKERS[:3]] + [("dan", 50, 50, 10, 10)]
    data = image(*boxes)
    rows = BoxConsensus().fit(data).assignment_columns(data)
    found = list(zip(rows["object"], rows["worker"], rows["status"], rows["x"], strict=True))
    assert found == [
        (1, "ann", "matched", 0), (1, "bob", "matched", 0), (1, "cem", "matched", 0),
        (1, "dan", "missed", None), (1, "eve", "missed", None), (None, "dan", "phantom", 50),
    ]  # fmt: skip


def test_a_bias_of_sides_is_found_and_subtracted():
    made = simulate.boxes(80, 4, simulate.Dense(), miss=0.0, phantoms=0.0, noise=0.01, bias=0.0)
    data, far = made.data, np.array([-0.1, -0.1, 0.2, 0.2])
    boxes = data.boxes.copy()
    for worker in (2, 3):  # both are too loose, so that the median is too
        own = data.box_worker == worker
        boxes[own] += far * np.tile(boxes[own, 2:], 2)
    loose = CrowdRegions(**{**vars_of(data), "boxes": boxes})
    plain = BoxConsensus(overlap=0.2, corners="median").fit(loose)
    fitted = BoxConsensus(overlap=0.2).fit(loose)
    assert (plain.side_bias_[2:].mean(axis=1) > plain.side_bias_[:2].mean(axis=1) + 0.05).all()
    bias = fitted.corner_model_.question_bias_
    apart = np.abs(bias[2:].mean(axis=0) - bias[:2].mean(axis=0))
    assert apart == pytest.approx(np.full(4, 0.1) / 1.1, abs=0.02)  # in units of the median box


def vars_of(data):
    return {name: getattr(data, name) for name in (
        "task", "worker", "tasks", "workers", "boxes", "label", "pointer", "classes"
    )}  # fmt: skip


def test_a_method_for_classes_names_objects():
    made = simulate.boxes(30, 5, simulate.Dense(), classes=("a", "b"), mistype=0.15, miss=0.0)
    vote = BoxConsensus().fit(made.data)
    fitted = BoxConsensus(labels="dawid-skene").fit(made.data)
    assert fitted.label_model_.classes_.tolist() == ["a", "b"]
    assert fitted.score(made.data, made.truth) >= vote.score(made.data, made.truth) - 0.02
    assert fitted.score(made.data, made.truth) > 0.9


def test_wrong_parameters_are_refused():
    data = image(("ann", 0, 0, 9, 9))
    for params, reason in (
        ({"overlap": 0.0}, "overlap is"), ({"threshold": 2}, "threshold is"),
        ({"corners": "dawid-skene"}, "a method for numbers"), ({"labels": 3}, "for labels"),
        ({"same_class": "yes"}, "same_class"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=reason):
            BoxConsensus(**params).fit(data)
