"""Checks of methods that take sets of classes: finite, humble, and empty sets are answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.testing.crowds import columns_of
from wisecrowd.testing.foundation import (
    Check,
    Make,
    assert_alike,
    assert_close,
    check,
    class_names,
    fit_or_refusal,
    require,
    short_run,
    text_ids,
    who_labels_what,
    with_params,
)
from wisecrowd.testing.kind_checks import assert_all_sound, assert_finite, check_objective_monotone

MOST_CERTAIN = 0.97  # probability that two of three workers may give a class, with one task


# ----------------------------------------------------------------------------------------- example


def example(make: Make, seed: int = 0) -> CrowdSets:
    """Return 40 tasks with sets of four classes by 4 of 7 workers each, with text ids."""
    rng = np.random.default_rng(seed)
    task, worker = who_labels_what(rng)
    prototypes = np.array([[0.9, 0.8, 0.1, 0.05], [0.1, 0.2, 0.7, 0.3]])
    truth = rng.random((40, 4)) < prototypes[(rng.random(40) < 0.4).astype(int)]
    rates = np.stack([rng.uniform(0.0, 0.3, (7, 4)), rng.uniform(0.6, 0.95, (7, 4))])
    chance = np.where(truth[task], rates[1][worker], rates[0][worker])
    names = np.array(class_names(4), dtype=object)
    texts = ["|".join(names[own]) for own in rng.random((160, 4)) < chance]
    return CrowdSets.from_arrays(
        *text_ids(task, worker), np.array(texts, dtype=object), classes=names.tolist()
    )


def _reverse_members(data: CrowdSets) -> CrowdSets:
    """Return the sets with the classes in reverse order; members stay ascending."""
    last = np.int32(data.n_classes - 1)
    place = (data.pointer[:-1] + data.pointer[1:] - 1)[data.annotation]
    return replace(data, members=last - data.members[place - np.arange(len(data.members))])


def _members_reversed(learned: Mapping[str, Any]) -> dict[str, Any]:
    rates = ("probas_", "sensitivity_", "false_alarm_")
    found = {name: learned[name][:, ::-1] for name in rates if name in learned}
    kept = ("worker_accuracy_", "worker_sensitivity_", "worker_false_alarm_", "set_size_")
    return found | {name: learned[name] for name in kept}


SYMMETRIES = (
    Symmetry(name="reversing the classes", change=_reverse_members, expected=_members_reversed),
)


# ------------------------------------------------------------------------------------------ checks


def _assert_sound(fitted: Aggregator, data: CrowdSets, when: str) -> None:
    """Require finite numbers, and sets that follow from the probabilities."""
    assert_finite(fitted, when)
    shape = (data.n_tasks, data.n_classes)
    require(fitted.probas_.shape == shape, f"probas_ has another shape {when}")
    inside = (fitted.probas_ >= 0) & (fitted.probas_ <= 1)
    require(inside.all(), f"probas_ are not probabilities {when}")
    sets = CrowdSets.from_arrays(
        data.tasks, ["answer"] * data.n_tasks, fitted.labels_, classes=data.classes.tolist(),
        tasks=data.tasks,
    )  # fmt: skip
    require(np.array_equal(sets.votes > 0, fitted.members_), f"labels_ are not members_ {when}")
    table = fitted.main_columns()
    names = ["task", "labels", *(f"p_{name}" for name in data.classes.tolist())]
    require(list(table) == names, f"the columns of the table are {list(table)} {when}")


@check
def check_sets_sound(make: Make) -> None:
    """Require sound results on small crowds and on degenerate ones."""
    odd: dict[str, tuple[Any, ...]] = {
        "with one annotation": (["s"], ["ann"], ["a|b"]),
        "with one class": (["s", "s", "t"], ["ann", "bob", "ann"], ["a", "", "a"]),
        "with one worker": (["s", "t"], ["ann", "ann"], ["a", "b|c"]),
        "with full sets only": (["s", "s"], ["ann", "bob"], ["a|b", "a|b"]),
        "with odd names": (["s", "s"], ["ann", "bob"], ['["a|b", "[c"]', '["[c"]']),
        "with separate crowds": (["s", "t"], ["ann", "bob"], ["a", "b"]),
    }
    crowds = {when: CrowdSets.from_arrays(*columns) for when, columns in odd.items()}
    empty = CrowdSets.from_arrays(["s", "s"], ["ann", "bob"], ["", "[]"], classes=["a", "b"])
    assert_all_sound(make, _assert_sound, {**crowds, "with empty sets only": empty})


@check
def check_unlabelled(make: Make) -> None:
    """Require that a task and a worker without labels change nothing."""
    data = example(make)
    plain = short_run(make).fit(data)
    more = CrowdSets.from_arrays(
        *columns_of(data), classes=data.classes.tolist(), tasks=[*data.tasks, "zzz"],
        workers=[*data.workers, "zzz"],
    )  # fmt: skip
    fitted = short_run(make).fit(more)
    assert_alike(make, plain.probas_, fitted.probas_[:-1], "probas_", "with an unlabelled task")
    kept = plain.worker_sensitivity_, fitted.worker_sensitivity_[:-1]
    assert_alike(make, *kept, "worker_sensitivity_", "with an unlabelled worker")


@check
def check_threshold(make: Make) -> None:
    """Require that the sets follow the threshold, and that impossible ones are refused."""
    data = example(make)
    for threshold in (0.2, 0.8):
        fitted = with_params(lambda: short_run(make), threshold=threshold).fit(data)
        expected = fitted.probas_ >= threshold - 1e-9
        require(np.array_equal(fitted.members_, expected), f"members_ at {threshold}")
    fitted = with_params(lambda: short_run(make), threshold="cardinality").fit(data)
    number = np.abs(fitted.members_.sum(axis=1) - fitted.probas_.sum(axis=1))
    require((number <= 0.5 + 1e-6).all(), "the sizes of the sets are not those expected")
    for wrong in (0, 1.5, "half", None, True):
        refused = fit_or_refusal(with_params(make, threshold=wrong), data) is None
        require(refused, f"the threshold {wrong!r} was accepted")


@check
def check_gold_sets(make: Make) -> None:
    """Require that known sets are kept, and that wrong gold and starts are refused."""
    data = example(make)
    task, name = data.tasks[0], data.classes[-1]
    for known in ("", name, list(data.classes[:2])):
        fitted = short_run(make).fit(data, gold={task: known})
        expected = known if isinstance(known, str) else "|".join(known)
        require(fitted.labels_[0] == expected, f"the gold {known!r} was not kept")
    for options in (
        {"gold": {task: "no-such-class"}},
        {"gold": {task: f"{name}|{name}"}},
        {"gold": {"no such task": name}},
        {"task_prior": np.full(data.n_classes, 2.0)},
        {"task_prior": np.full((3, data.n_classes), 0.5)},
        {"init": np.ones((data.n_tasks, data.n_classes))},
    ):
        require(fit_or_refusal(make(), data, **options) is None, f"{options} was accepted")


@check
def check_predict_repeats_fit(make: Make) -> None:
    """Require that ``predict`` on the training labels repeats the fit, and works on new tasks."""
    if not make().tags().inductive:
        return
    data = example(make)
    fitted = make().fit(data)
    assert_close(fitted.probas_, fitted.predict_proba(data), "probas_", "between fit and predict")
    require(fitted.predict(data).tolist() == fitted.labels_.tolist(), "predict differs")
    known, stranger = data.workers[0], "somebody new"
    names = data.classes.tolist()
    new = fitted.predict_proba((["new", "new"], [known, stranger], [names[0], ""]))
    require(new.shape == (1, data.n_classes) and np.isfinite(new).all(), "a new task")


@check
def check_few_labels(make: Make) -> None:
    """Require that unanimous sets are kept, and that one task gives no certainty."""
    agreed = (["s"] * 3, ["ann", "bob", "cem"], ["a|b"] * 3)
    require(make().fit(agreed).labels_[0] == "a|b", "unanimous sets were changed")
    nothing = CrowdSets.from_arrays(["s"] * 3, ["ann", "bob", "cem"], [""] * 3, classes=["a"])
    require(make().fit(nothing).labels_[0] == "", "unanimous empty sets were changed")
    split = (["s"] * 3, ["ann", "bob", "cem"], ["a", "a", "b"])
    most = make().fit(split).probas_.max()
    require(most <= MOST_CERTAIN, f"two of three workers give {most:.4f}")


CHECKS: tuple[Check, ...] = (
    check_sets_sound,
    check_objective_monotone,
    check_unlabelled,
    check_threshold,
    check_gold_sets,
    check_predict_repeats_fit,
    check_few_labels,
)
