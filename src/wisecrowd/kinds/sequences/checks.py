"""Checks of methods that take sequences of tags: legal, finite and humble on any tags."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.testing.crowds import columns_of
from wisecrowd.testing.foundation import (
    Check,
    Make,
    assert_close,
    check,
    require,
    short_run,
    text_ids,
    who_labels_what,
    with_both_kernels,
)
from wisecrowd.testing.kind_checks import assert_all_sound, assert_finite, check_objective_monotone

MOST_CERTAIN = 0.97  # confidence that one sentence with three workers may give


# ----------------------------------------------------------------------------------------- example


def example(make: Make, seed: int = 0) -> CrowdSequences:
    """Return 40 tagged sentences by 4 of 7 workers each, with text ids."""
    rng = np.random.default_rng(seed)
    task, worker = who_labels_what(rng)
    truth = [_sentence(rng) for _ in range(40)]
    skill = rng.uniform(0.6, 0.95, 7)
    pairs = zip(task.tolist(), worker.tolist(), strict=True)
    texts = [" ".join(_mistagged(rng, truth[i], skill[j])) for i, j in pairs]
    classes = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    return CrowdSequences.from_arrays(
        *text_ids(task, worker), np.array(texts, dtype=object), classes=classes
    )


def _sentence(rng: np.random.Generator) -> list[str]:
    """Return the tags of 3 to 12 tokens, with spans of skewed types."""
    tags: list[str] = []
    size = int(rng.integers(3, 13))
    while len(tags) < size:
        if rng.random() < 0.7:
            tags.append("O")
        else:
            kind = "PER" if rng.random() < 0.7 else "LOC"
            tags += [f"B-{kind}", *[f"I-{kind}"] * int(rng.integers(0, 3))]
    return tags[:size]


def _mistagged(rng: np.random.Generator, truth: list[str], skill: float) -> list[str]:
    """Return tags of a worker who misses spans, cuts them short and mistakes their type."""
    tags = list(truth)
    for t, tag in enumerate(truth):
        if rng.random() > skill:
            tags[t] = "O" if rng.random() < 0.6 else tag.replace("LOC", "PER")
    return tags


def _reversed_tags(data: Any) -> NDArray[np.int64]:
    """Return the code of each tag of BIO if the types are in reverse order."""
    n = len(data)
    return np.append(0, np.arange(1, n).reshape(-1, 2)[::-1].ravel())


def _reverse_types(data: CrowdSequences) -> CrowdSequences:
    return replace(data, tags=_reversed_tags(data.classes)[data.tags].astype(np.int32))


def _types_reversed(learned: Mapping[str, Any]) -> dict[str, Any]:
    found = {"marginals_": learned["marginals_"][:, _reversed_tags(learned["classes_"])]}
    return found | {name: learned[name] for name in ("worker_accuracy_", "span_recall_")}


SYMMETRIES = (
    Symmetry(name="reversing the types", change=_reverse_types, expected=_types_reversed),
)


# ------------------------------------------------------------------------------------------ checks


def _assert_sound(fitted: Aggregator, data: CrowdSequences, when: str) -> None:
    """Require legal tags, probabilities, and one span per row of the main table."""
    assert_finite(fitted, when)
    n_tokens = int(data.token_pointer[-1])
    require(fitted.marginals_.shape == (n_tokens, data.n_classes), f"marginals_ {when}")
    require(np.allclose(fitted.marginals_.sum(axis=1), 1, atol=1e-9), f"marginals_ {when}")
    legal, known = data.tag_scheme.legal, data.token_pointer
    for i in range(data.n_tasks):
        own = [len(legal) - 1, *fitted.path_[known[i] : known[i + 1]].tolist()]
        pairs = itertools.pairwise(own)
        require(all(legal[a, b] for a, b in pairs), f"the tags of a task are not legal {when}")
    table = fitted.main_columns()
    require(len(table["task"]) == int(fitted.n_spans_.sum()), f"the table of spans {when}")
    require((table["start"] < table["end"]).all(), f"a span has no tokens {when}")
    inside = (table["confidence"] >= 0) & (table["confidence"] <= 1)
    require(inside.all(), f"the confidence is not a probability {when}")


@check
def check_sequences_sound(make: Make) -> None:
    """Require sound results on small crowds and on degenerate ones."""
    odd = {
        "with one annotation": (["s"], ["ann"], ["O B-PER I-PER"]),
        "with one token": (["s", "s"], ["ann", "bob"], ["B-PER", "O"]),
        "with one worker": (["s", "t"], ["ann", "ann"], ["O B-PER", "O O O"]),
        "without spans": (["s", "s"], ["ann", "bob"], ["O O", "O O"]),
        "with plain classes": (["s", "s"], ["ann", "bob"], ["N V N", "N N N"]),
        "with illegal tags": (["s", "s"], ["ann", "bob"], ["I-PER I-PER", "O I-LOC"]),
        "with separate crowds": (["s", "t"], ["ann", "bob"], ["B-PER O", "O B-LOC"]),
    }
    crowds = {when: CrowdSequences.from_arrays(*columns) for when, columns in odd.items()}
    assert_all_sound(make, _assert_sound, crowds)


@check
def check_unlabelled(make: Make) -> None:
    """Require that a task and a worker without labels change nothing."""
    data = example(make)
    columns, classes = columns_of(data), data.classes.tolist()
    plain = short_run(make).fit(data)
    more = CrowdSequences.from_arrays(
        *columns, classes=classes, tasks=[*data.tasks, "zzz"], workers=[*data.workers, "zzz"]
    )
    fitted = short_run(make).fit(more)
    assert_close(plain.marginals_, fitted.marginals_, "marginals_", "with an unlabelled task")
    require(fitted.tags_[-1] == "" and int(fitted.n_spans_[-1]) == 0, "a task without labels")


@check
def check_renamed_tokens(make: Make) -> None:
    """Require that renaming tasks moves their tokens and spans with them."""
    data = example(make)
    task, worker, tags = columns_of(data)
    back = dict(zip(data.tasks.tolist(), data.tasks[::-1].tolist(), strict=True))
    renamed = np.array([back[one] for one in task.tolist()], dtype=object)
    first = short_run(make).fit(data)
    second = short_run(make).fit(
        CrowdSequences.from_arrays(renamed, worker, tags, classes=data.classes.tolist())
    )
    same = first.tags_.tolist() == second.tags_[::-1].tolist()
    require(same, "tags_ differ when tasks are renamed")
    require(
        np.array_equal(first.n_spans_, second.n_spans_[::-1]), "n_spans_ when tasks are renamed"
    )


@check
def check_gold_tags(make: Make) -> None:
    """Require that known tags are kept, and that wrong gold and priors are refused."""
    data = example(make)
    task = data.tasks[0]
    known = " ".join(["B-LOC", *["I-LOC"] * (int(data.length[0]) - 1)])
    fitted = make().fit(data, gold={task: known})
    require(fitted.tags_[0] == known, "the gold was not kept")
    for options in (
        {"gold": {task: "O"}},
        {"gold": {task: known.replace("B-", "I-")}},
        {"gold": {task: known.replace("LOC", "LOCATION")}},
        {"gold": {"no such task": "O"}},
        {"task_prior": np.ones(data.n_classes)},
        {"init": np.ones((data.n_tasks, data.n_classes))},
    ):
        _require_refusal(make, data, options)


def _require_refusal(make: Make, data: CrowdSequences, options: dict[str, Any]) -> None:
    try:
        make().fit(data, **options)
    except (DataError, ParameterError):
        return
    raise AssertionError(f"{options} was accepted")


@check
def check_predict_repeats_fit(make: Make) -> None:
    """Require that ``predict`` on the training labels repeats the fit, and works on new tasks."""
    if not make().tags().inductive:
        return
    data = example(make)
    fitted = make().fit(data)
    require(fitted.predict(data).tolist() == fitted.tags_.tolist(), "predict differs from the fit")
    new = fitted.predict((["new"], [data.workers[0]], ["O B-PER I-PER"]))
    require(len(new[0].split()) == 3, f"a new task gets {new[0]!r}")


@check
def check_few_labels(make: Make) -> None:
    """Require that unanimous tags are kept, and that one sentence gives no certainty."""
    agreed = (["s"] * 3, ["ann", "bob", "cem"], ["B-PER I-PER O"] * 3)
    require(make().fit(agreed).tags_[0] == "B-PER I-PER O", "unanimous tags were changed")
    split = (["s"] * 3, ["ann", "bob", "cem"], ["B-PER I-PER O", "B-PER I-PER O", "O O O"])
    confidence = make().fit(split).span_confidence_
    require((confidence <= MOST_CERTAIN).all(), f"two of three workers give {confidence}")


@check
def check_kernels_agree(make: Make) -> None:
    """Require that compiled and reference kernels give the same results."""
    data = example(make)
    plain, fast = with_both_kernels(partial(short_run, make), data)
    assert_close(plain.marginals_, fast.marginals_, "marginals_", "between kernels")
    require(np.array_equal(plain.path_, fast.path_), "path_ differs between kernels")


CHECKS: tuple[Check, ...] = (
    check_sequences_sound,
    check_objective_monotone,
    check_unlabelled,
    check_renamed_tokens,
    check_gold_tags,
    check_predict_repeats_fit,
    check_few_labels,
    check_kernels_agree,
)
