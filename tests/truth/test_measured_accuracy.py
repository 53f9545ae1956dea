"""Accuracy by checked tasks: designs, looks, missing answers, two people, and other kinds."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

import wisecrowd as wc
from wisecrowd import simulate, truth
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.truth.measured_accuracy import look_level
from wisecrowd.truth.stratified import post_stratify, random_order_share, stratified_share

CLASSES = ["no", "yes"]


@pytest.fixture(scope="module")
def made():
    return simulate.crowd(
        400, 20 * simulate.OneCoinWorkers(4, 2), simulate.PerTask(3), classes=CLASSES,
        random_state=1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def fit(made):
    return DawidSkene().fit(made.labels)


def filled(listed, answers, *, until=None, column="label", without=()):
    """Return a list with the answers up to a place, as a csv file gives it back."""
    columns = {name: [str(one) for one in v] for name, v in listed.columns.items()}
    columns[column] = [
        answers[task] if (until is None or i < until) and i not in without else ""
        for i, task in enumerate(listed.columns["task"].tolist())
    ]
    return pa.table(columns)


def answers_of(made):
    names = np.array(CLASSES)[made.truth] if made.truth.dtype.kind in "iu" else made.truth
    return dict(zip(made.labels.tasks.tolist(), names.tolist(), strict=True))


def test_the_result_is_the_stratified_estimate(made, fit):
    listed, answers = truth.check_list(made.labels, 60, fit=fit), answers_of(made)
    found = truth.accuracy(made.labels, filled(listed, answers), fit=fit)
    task, own = listed.columns["task"], listed.columns["stratum"] - 1
    said = dict(zip(made.labels.tasks.tolist(), fit.labels_.tolist(), strict=True))
    right = np.array([said[one] == answers[one] for one in task.tolist()])
    share = stratified_share(
        np.bincount(own, right, 5), np.bincount(own), listed.strata["n_tasks"], 0.95
    )
    assert (found.value, found.low, found.high) == pytest.approx(tuple(map(float, share[:3])))
    assert (found.n, found.n_errors, found.n_tasks) == (60, int((~right).sum()), 400)
    assert found.mean_confidence == pytest.approx(fit.confidence_.mean())
    assert found.design == "stratified"
    assert found.notes == ()
    assert found.sentence in str(found.sentence)
    assert found.strata["n_right"].sum() == right.sum()


def test_tables_have_the_promised_columns(made, fit):
    listed = truth.check_list(made.labels, 60, fit=fit)
    found = truth.accuracy(made.labels, filled(listed, answers_of(made)), fit=fit).tables()
    assert list(found) == ["accuracy", "accuracy_strata"]
    assert list(found["accuracy"])[:8] == [
        "value", "low", "high", "n", "n_errors", "n_eff", "mean_confidence", "design",
    ]  # fmt: skip
    assert list(found["accuracy_strata"]) == [
        "confidence_from", "confidence_to", "n_tasks", "n_checked", "n_right", "accuracy",
    ]  # fmt: skip


def test_limits_of_strata_are_those_of_the_list(made, fit):
    listed = truth.check_list(made.labels, 60, fit=fit)
    found = truth.accuracy(made.labels, filled(listed, answers_of(made)), fit=fit).strata
    for name in ("confidence_from", "confidence_to", "n_tasks"):
        assert found[name] == pytest.approx(listed.strata[name])


def test_the_interval_holds_in_its_share_of_lists(made, fit):
    true, inside = np.mean(fit.labels_ == [answers_of(made)[t] for t in made.labels.tasks]), []
    for seed in range(60):
        listed = truth.check_list(made.labels, 40, fit=fit, random_state=seed)
        found = truth.accuracy(made.labels, filled(listed, answers_of(made)), fit=fit)
        inside.append(found.low <= true <= found.high)
    assert np.mean(inside) >= 0.9


def test_if_everything_is_checked_the_share_is_exact(made, fit):
    found = truth.accuracy(made.labels, answers_of(made), fit=fit)
    true = np.mean([answers_of(made)[t] == s for t, s in zip(fit.tasks_, fit.labels_, strict=True)])
    assert found.low == found.value == found.high == pytest.approx(true)
    assert found.design == "all tasks"
    assert "all 400 tasks checked" in found.sentence


def test_known_answers_without_a_list_are_post_stratified(made, fit):
    some = dict(itertools.islice(answers_of(made).items(), 80))
    found = truth.accuracy(made.labels, some, fit=fit)
    right = np.array([answers_of(made)[t] for t in made.labels.tasks]) == fit.labels_
    known = np.arange(400) < 80
    post = post_stratify(fit.confidence_, right, known, 0.95)
    assert (found.value, found.low) == pytest.approx((post.value, post.low))
    assert found.design == "known answers"
    assert "drawn at random" in found.notes[0]


def test_answers_to_tasks_without_labels_do_not_count():
    task, worker = np.repeat(np.arange(60), 3), np.tile([0, 1, 2], 60)
    data = wc.CrowdLabels.from_arrays(task, worker, task % 2, tasks=np.arange(80))
    known = dict.fromkeys(range(40, 80), 1)
    found = truth.accuracy(data, known, fit=MajorityVote().fit(data))
    assert (found.n, found.n_tasks) == (20, 60)
    assert len(found.notes) == 1
    with pytest.raises(DataError, match="No checked task has a label"):
        truth.accuracy(data, {70: 1}, fit=MajorityVote().fit(data))


def test_mappings_frames_and_arrays_give_the_same(made, fit):
    some = dict(itertools.islice(answers_of(made).items(), 60))
    array = [some.get(task) for task in made.labels.tasks.tolist()]
    frame = pa.table({"task": list(some), "label": list(some.values())})
    found = [truth.accuracy(made.labels, one, fit=fit) for one in (some, array, frame)]
    assert len({(one.value, one.low, one.high) for one in found}) == 1


def test_the_default_fit_is_the_default_method(made):
    listed = truth.check_list(made.labels, 30)
    found = truth.accuracy(made.labels, filled(listed, answers_of(made)))
    default = wc.aggregation.Auto()._fit_without_checks(made.labels)
    assert found.mean_confidence == pytest.approx(default.confidence_.mean())


def test_other_results_are_judged_in_the_strata_of_the_list(made, fit):
    listed = truth.check_list(made.labels, 60, fit=fit)
    vote = MajorityVote().fit(made.labels)
    found = truth.accuracy(made.labels, filled(listed, answers_of(made)), fit=vote)
    assert found.strata["n_checked"].tolist() == listed.strata["n_listed"].tolist()


# ------------------------------------------------------------------------------------------ looks


def test_planned_looks_have_wider_intervals_and_no_warning(made, fit):
    planned = truth.check_list(made.labels, 60, fit=fit, looks=(30,))
    answers = answers_of(made)
    for until in (30, 60):
        found = truth.accuracy(made.labels, filled(planned, answers, until=until), fit=fit)
        assert (found.n, found.notes) == (until, ())
    columns = {k: v for k, v in planned.columns.items() if k != "look"}
    alone = filled(type(planned)(columns, planned.strata, (60,)), answers)
    narrow = truth.accuracy(made.labels, alone, fit=fit)
    assert narrow.value == found.value
    assert narrow.low > found.low


def test_looks_can_be_named_later(made, fit):
    listed = truth.check_list(made.labels, 60, fit=fit)
    table = filled(listed, answers_of(made), until=20)
    early = truth.accuracy(made.labels, table, fit=fit)
    assert early.notes == ("You looked more often than planned; read the interval as 90%.",)
    planned = truth.accuracy(made.labels, table, fit=fit, looks=(20, 60))
    assert planned.notes == ()
    assert planned.low < early.low


def test_levels_of_looks_are_pococks():
    """Simulated z of equal steps stay below the quantile of the level in 95% of the paths."""
    from scipy.special import ndtri

    steps = np.random.default_rng(0).normal(size=(100_000, 5))
    for k in range(1, 6):
        z = np.cumsum(steps[:, :k], axis=1) / np.sqrt(np.arange(1, k + 1))
        within = (np.abs(z) < ndtri((1 + look_level(0.95, k)) / 2)).all(axis=1).mean()
        assert within == pytest.approx(0.95, abs=0.004)
    assert look_level(0.9, 2) == pytest.approx(0.95)


def test_a_list_for_any_time_has_the_interval_of_a_random_order(made, fit):
    listed = truth.check_list(made.labels, 60, fit=fit, anytime=True)
    found = truth.accuracy(made.labels, filled(listed, answers_of(made), until=25), fit=fit)
    ends = random_order_share(25 - found.n_errors, 25, 400, 0.95)
    assert (found.low, found.high) == pytest.approx(ends)
    assert (found.design, found.notes) == ("random order", ())


# ---------------------------------------------------------------------------------------- answers


def test_a_few_empty_rows_do_not_count(made, fit):
    listed = truth.check_list(made.labels, 60, fit=fit)
    found = truth.accuracy(
        made.labels, filled(listed, answers_of(made), without=(3, 17, 59)), fit=fit
    )
    assert (found.n, found.notes) == (57, ())


def test_many_empty_rows_give_both_extremes(made, fit):
    listed = truth.check_list(made.labels, 60, fit=fit)
    found = truth.accuracy(made.labels, filled(listed, answers_of(made), without=range(9)), fit=fit)
    assert len(found.notes) == 1
    assert found.notes[0].startswith("9 of 60 listed tasks have no answer")
    n_right = found.n - found.n_errors
    least, most = (int(word[:-1]) / 100 for word in found.notes[0].split() if word[-1] == "%")
    assert least < found.value < most
    assert most - least == pytest.approx(9 / 60, abs=0.06)
    assert least == pytest.approx(n_right / 60, abs=0.1)


def test_a_stratum_without_answers_joins_its_neighbour(made, fit):
    listed = truth.check_list(made.labels, 60, fit=fit)
    gone = np.flatnonzero(listed.columns["stratum"] == 2).tolist()
    found = truth.accuracy(made.labels, filled(listed, answers_of(made), without=gone), fit=fit)
    assert found.strata["n_tasks"].tolist() == [160, 80, 80, 80]
    assert np.isfinite([found.value, found.low, found.high]).all()


def test_rows_that_did_not_come_back_count_as_missing(made, fit):
    listed = truth.check_list(made.labels, 60, fit=fit)
    table = filled(listed, answers_of(made)).slice(9)
    found = truth.accuracy(made.labels, table, fit=fit)
    assert found.n == 51
    assert "9 of 60 listed tasks" in found.notes[0]
    some = truth.accuracy(made.labels, filled(listed, answers_of(made)).slice(45), fit=fit)
    own, weight = (listed.columns[name][45:] for name in ("stratum", "weight"))
    codes = np.unique(own, return_inverse=True)[1]
    n, sizes = np.bincount(codes), np.bincount(codes, weight)
    share = stratified_share(some.strata["n_right"], n, sizes * 400 / sizes.sum(), 0.95)
    assert (some.value, some.low, some.n_eff) == pytest.approx(
        (float(share.value), float(share.low), float(share.n_eff)), rel=0.01
    )


def test_a_second_person_tells_how_often_people_err(made, fit):
    listed, answers = truth.check_list(made.labels, 60, fit=fit), answers_of(made)
    other = {task: one if i % 10 else CLASSES[one == "no"]
             for i, (task, one) in enumerate(answers.items())}  # fmt: skip
    table = filled(listed, answers)
    second = pa.array([other[task] for task in listed.columns["task"].tolist()])
    found = truth.accuracy(made.labels, table.append_column("second_label", second), fit=fit)
    assert "Two people agree in" in found.notes[-1]
    few = pa.array([one if i < 19 else "" for i, one in enumerate(second.to_pylist())])
    found = truth.accuracy(made.labels, table.append_column("second_label", few), fit=fit)
    assert found.notes == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label": lambda rows: ["maybe", *rows[1:]]}, "class 'maybe'"),
        ({"label": lambda rows: [""] * len(rows)}, "no answers yet"),
        ({"task": lambda rows: ["x1", *rows[1:]]}, "'x1', which has no row"),
        ({"weight": lambda rows: ["0", *rows[1:]]}, "numbers above 0"),
        ({"weight": lambda rows: [str(float(x) / 2) for x in rows]}, "drawn from 200 tasks"),
        ({"weight": lambda rows: [str(float(x) * 2) for x in rows]}, "add up to 800"),
        ({"order": lambda rows: ["first", *rows[1:]]}, "column order"),
        ({"task": lambda rows: [*rows[:-1], rows[0]],
          "label": lambda rows: ["no", *rows[1:-1], "yes"]}, "two answers"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(made, fit, change, said):
    table = filled(truth.check_list(made.labels, 60, fit=fit), answers_of(made)).to_pydict()
    table |= {name: function(table[name]) for name, function in change.items()}
    with pytest.raises(DataError, match=said):
        truth.accuracy(made.labels, pa.table(table), fit=fit)


def test_known_answers_that_do_not_fit_are_refused(made, fit):
    with pytest.raises(DataError, match="'nobody', which has no row"):
        truth.accuracy(made.labels, {"nobody": "yes"}, fit=fit)
    with pytest.raises(DataError, match="No task has a known answer"):
        truth.accuracy(made.labels, {}, fit=fit)
    task = made.labels.tasks.tolist()[0]
    with pytest.raises(ParameterError, match="seen gold"):
        truth.accuracy(
            made.labels, {task: "no"}, fit=DawidSkene().fit(made.labels, gold={task: "no"})
        )
    with pytest.raises(ParameterError, match="looks"):
        truth.accuracy(made.labels, {task: "no"}, fit=fit, looks=(1, 2, 3, 4, 5, 6))


# -------------------------------------------------------------------------------------- other kinds


def test_numbers_have_their_mean_absolute_error():
    rng = np.random.default_rng(0)
    true, task = rng.normal(size=200), np.repeat(np.arange(200), 4)
    data = wc.CrowdNumbers.from_arrays(
        task, np.tile(np.arange(4), 200), true[task] + rng.normal(size=800)
    )
    fit = wc.aggregation.GaussianEM().fit(data)
    listed = truth.check_list(data, 60, fit=fit)
    table = filled(listed, true.astype(str))
    found = truth.accuracy(data, table, fit=fit)
    error = np.abs(fit.values_ - true)
    task, weight = listed.columns["task"], listed.columns["weight"]
    assert found.value == pytest.approx(float(weight @ error[task] / weight.sum()))
    assert found.low < error.mean() < found.high
    assert found.measure == "mean_absolute_error"
    assert "mean absolute error" in found.sentence
    assert np.isnan(found.mean_confidence)
    assert found.is_error
    with pytest.raises(ParameterError, match="plan looks"):
        truth.check_list(data, 60, fit=fit, anytime=True)
    exact = truth.accuracy(data, dict(enumerate(true)), fit=fit)
    assert exact.value == exact.low == pytest.approx(error.mean())


def test_texts_have_their_word_error_rate():
    tasks = [f"t{i}" for i in range(40)]
    texts = [f"word{i} and {'so on' * (i % 3)}" for i in range(40)]
    data = wc.CrowdTexts.from_arrays(np.repeat(tasks, 2), ["a", "b"] * 40, np.repeat(texts, 2))
    fit = wc.aggregation.Rover().fit(data)
    wrong = {task: f"{text} more" if i < 10 else text
             for i, (task, text) in enumerate(zip(tasks, texts, strict=True))}  # fmt: skip
    exact = truth.accuracy(data, wrong, fit=fit)
    words = sum(len(text.split()) for text in wrong.values())
    assert exact.value == pytest.approx(10 / words)
    assert exact.n_errors == 10
    listed = truth.check_list(data, 30, fit=fit)
    assert listed.to_fill_in == ["text", "done"]
    found = truth.accuracy(data, filled(listed, dict(zip(tasks, texts, strict=True)),
                                        column="text"), fit=fit)  # fmt: skip
    assert found.value == found.low == 0
    assert 0.01 < found.high < 0.2
    assert "rough" in found.notes[0]
    empty = filled(listed, dict.fromkeys(tasks, ""), column="text").to_pydict()
    empty["done"] = ["x"] * 20 + [""] * 10
    assert truth.accuracy(data, pa.table(empty), fit=fit).n == 20


def test_spans_have_their_f1():
    tags = ["B-PER O O", "O B-LOC I-LOC", "O O O", "B-PER O B-LOC"] * 10
    tasks = [f"t{i}" for i in range(40)]
    data = wc.CrowdSequences.from_arrays(np.repeat(tasks, 2), ["a", "b"] * 40, np.repeat(tags, 2))
    fit = wc.aggregation.TokenWise().fit(data)
    known = dict(zip(tasks, tags, strict=True)) | {"t0": "O O O", "t1": "O B-LOC O"}
    found = truth.accuracy(data, known, fit=fit)
    assert found.value == pytest.approx(2 * 38 / (40 + 39))  # one extra span, one with other limits
    assert (found.measure, found.n_errors) == ("span_f1", 2)
    part = {task: known[task] for task in tasks[:30]}
    found = truth.accuracy(data, part, fit=fit)
    assert found.low < found.value < found.high <= 1
    assert found.value == pytest.approx(2 * 28 / (30 + 29))


def test_boxes_have_their_f1():
    tasks = [f"t{i}" for i in range(40)]
    box = [10.0, 10.0, 20.0, 20.0]
    rows = [(task, worker, *box) for task in tasks for worker in "ab"]
    data = wc.CrowdRegions.from_arrays(*map(list, zip(*rows, strict=True)))
    fit = wc.aggregation.BoxConsensus().fit(data)
    listed = truth.check_list(data, 35, fit=fit)
    assert listed.to_fill_in == ["x", "y", "width", "height", "done"]
    columns = {name: [str(one) for one in v] for name, v in listed.columns.items()}
    for name, value in zip(("x", "y", "width", "height"), box, strict=True):
        columns[name] = [str(value)] * 33 + [""] * 2
    columns["done"][33] = "yes"  # an image without boxes; the last row is not answered
    found = truth.accuracy(data, pa.table(columns), fit=fit)
    assert (found.n, found.n_errors) == (34, 1)
    w = listed.columns["weight"][:34]
    right = 2 * w[:33].sum()
    assert found.value == pytest.approx(right / (right + w[33]), rel=0.02)
    columns["x"][0] = "left"
    with pytest.raises(DataError, match="give four numbers"):
        truth.accuracy(data, pa.table(columns), fit=fit)
