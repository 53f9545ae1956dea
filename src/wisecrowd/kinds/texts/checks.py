"""Checks of methods that take texts: sound, humble and independent of how rows are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.texts.container import CrowdTexts
from wisecrowd.testing.crowds import columns_of
from wisecrowd.testing.foundation import (
    Check,
    Make,
    assert_close,
    check,
    fit_or_refusal,
    require,
    short_run,
    text_ids,
    who_labels_what,
    with_both_kernels,
)
from wisecrowd.testing.kind_checks import assert_all_sound, assert_finite

MOST_CERTAIN = 0.97  # confidence that two of three equal answers may give
MOST_UNANIMOUS = 0.999  # confidence that three equal answers may give


# ----------------------------------------------------------------------------------------- example


def example(make: Make, seed: int = 0) -> CrowdTexts:
    """Return 40 short texts by 4 of 7 workers each, with text ids."""
    rng = np.random.default_rng(seed)
    task, worker = who_labels_what(rng)
    known = [f"{a}{b}{c}" for a in "bdgkm" for b in "aeou" for c in ("", "n", "rt")]
    truth = [rng.choice(known, int(rng.integers(2, 8))).tolist() for _ in range(40)]
    skill = rng.uniform(0.6, 0.95, 7)
    pairs = zip(task.tolist(), worker.tolist(), strict=True)
    texts = [_miswritten(rng, truth[i], known, skill[j]) for i, j in pairs]
    return CrowdTexts.from_arrays(*text_ids(task, worker), np.array(texts, dtype=object))


def _miswritten(rng: np.random.Generator, truth: list[str], known: list[str], skill: float) -> str:
    """Return a text of a worker who drops words, doubles them and takes them for others."""
    words: list[str] = []
    for word in truth:
        what = rng.random() if rng.random() > skill else 1.0
        words += [str(rng.choice(known))] if what < 0.6 else [] if what < 0.8 else [word]
        words += [word] if 0.8 <= what < 1.0 else []
    text = " ".join(words)
    return text.capitalize() + "." if rng.random() < 0.5 else text


def _in_capitals(data: CrowdTexts) -> CrowdTexts:
    capitals = np.empty(data.n_annotations, dtype=object)
    capitals[:] = [text.upper() for text in data.text.tolist()]
    return replace(data, text=capitals)


def _same_words(learned: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("confidence_", "n_words_", "word_confidence_", "error_rate_", "worker_weight_")
    return {name: learned[name] for name in kept}


SYMMETRIES = (Symmetry(name="writing in capitals", change=_in_capitals, expected=_same_words),)


# ------------------------------------------------------------------------------------------ checks


def _assert_sound(fitted: Aggregator, data: CrowdTexts, when: str) -> None:
    """Require finite numbers, probabilities, and words that make the texts."""
    assert_finite(fitted, when)
    for name in ("confidence_", "word_confidence_", "error_rate_"):
        values = getattr(fitted, name)
        require(((values >= 0) & (values <= 1)).all(), f"{name} is not a probability {when}")
    require(len(fitted.texts_) == data.n_tasks, f"texts_ {when}")
    require(all(isinstance(text, str) for text in fitted.texts_), f"texts_ are not text {when}")
    require(len(fitted.words_) == int(fitted.n_words_.sum()), f"words_ {when}")


@check
def check_texts_sound(make: Make) -> None:
    """Require sound results on small crowds and on degenerate ones."""
    odd = {
        "with one annotation": (["s"], ["ann"], ["a text"]),
        "with one word": (["s", "s"], ["ann", "bob"], ["yes", "no"]),
        "with one worker": (["s", "t"], ["ann", "ann"], ["one text", "another"]),
        "with empty texts": (["s", "s", "t"], ["ann", "bob", "ann"], ["", "", ""]),
        "with an empty text": (["s", "s"], ["ann", "bob"], ["", "a few words"]),
        "with punctuation only": (["s", "s"], ["ann", "bob"], ["...", "?!"]),
        "with other scripts": (
            ["s", "s"],
            ["ann", "bob"],
            ["你好 हिन्दी", "你好 हिन्दी \u00e9e\u0301"],
        ),
        "with separate crowds": (["s", "t"], ["ann", "bob"], ["one text", "another"]),
    }
    crowds = {when: CrowdTexts.from_arrays(*columns) for when, columns in odd.items()}
    assert_all_sound(make, _assert_sound, crowds)


@check
def check_unanimous_texts(make: Make) -> None:
    """Require equal answers to be kept as written, with more confidence the more there are."""
    for text in ("He wrote to Marian.", "", "well-known words"):
        before = 0.0
        for n in range(1, 4):
            answers = (["s"] * n, [f"worker-{k}" for k in range(n)], [text] * n)
            fitted = make().fit(answers)
            require(fitted.texts_[0] == text, f"{n} answers {text!r} give {fitted.texts_[0]!r}")
            sure = float(fitted.confidence_[0])
            require(before < sure <= MOST_UNANIMOUS, f"{n} equal answers have confidence {sure}")
            before = sure


@check
def check_two_of_three(make: Make) -> None:
    """Require the text of two of three workers, without certainty."""
    texts = ["the boats are red", "the boats are red", "a goat was read"]
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        fitted = make().fit((["s"] * 3, ["ann", "bob", "cem"], [texts[k] for k in order]))
        require(fitted.texts_[0] == texts[0], f"two of three answers give {fitted.texts_[0]!r}")
        sure = float(fitted.confidence_[0])
        require(sure <= MOST_CERTAIN, f"two of three equal answers have confidence {sure}")


@check
def check_unlabelled(make: Make) -> None:
    """Require that a task and a worker without answers change nothing."""
    data = example(make)
    plain = short_run(make).fit(data)
    more = CrowdTexts.from_arrays(
        *columns_of(data), tasks=[*data.tasks, "zzz"], workers=[*data.workers, "zzz"]
    )
    fitted = short_run(make).fit(more)
    require(plain.texts_.tolist() == fitted.texts_[:-1].tolist(), "texts_ with an unlabelled task")
    assert_close(plain.confidence_, fitted.confidence_[:-1], "confidence_", "with an empty task")
    require(fitted.texts_[-1] == "" and fitted.confidence_[-1] == 0.0, "a task without answers")


@check
def check_renamed_texts(make: Make) -> None:
    """Require that renaming tasks and workers moves their texts and nothing else."""
    data = example(make)
    task, worker, text = columns_of(data)
    first = short_run(make).fit((task, worker, text))
    for which, ids in ((0, data.tasks.tolist()), (1, data.workers.tolist())):
        back = dict(zip(ids, ids[::-1], strict=True))
        columns: list[Any] = [task, worker, text]
        columns[which] = np.array([back[one] for one in columns[which].tolist()], dtype=object)
        second = short_run(make).fit(tuple(columns))
        found = second.texts_[:: -1 if which == 0 else 1]
        require(first.texts_.tolist() == found.tolist(), "texts_ differ when ids are renamed")


@check
def check_bad_texts(make: Make) -> None:
    """Require that missing texts, gold, priors and starts are refused."""
    data = example(make)
    for options in ({"gold": {data.tasks[0]: "a"}}, {"task_prior": [1.0]}, {"init": [1.0]}):
        require(fit_or_refusal(make(), data, **options) is None, f"{options} was accepted")
    missing: Any = (["s", "s"], ["ann", "bob"], ["a", None])
    require(fit_or_refusal(make(), missing) is None, "a missing text was accepted")


@check
def check_predict_repeats_fit(make: Make) -> None:
    """Require that ``predict`` on the training labels repeats the fit, and works on new tasks."""
    data = example(make)
    fitted = make().fit(data)
    require(fitted.predict(data).tolist() == fitted.texts_.tolist(), "predict differs from the fit")
    again = fitted._predicted(data, None, None)
    assert_close(again.confidence, fitted.confidence_, "confidence", "in predictions")
    new = fitted.predict((["new"], ["a stranger"], ["Some other words."]))
    require(new.tolist() == ["Some other words."], f"a new task gets {new.tolist()}")
    truth = dict(zip(data.tasks.tolist(), fitted.texts_.tolist(), strict=True))
    require(abs(fitted.score(data, truth) - 1) < 1e-12, "score of the method's own answers")


@check
def check_kernels_agree(make: Make) -> None:
    """Require that compiled and reference kernels give the same results."""
    data = example(make)
    plain, fast = with_both_kernels(partial(short_run, make), data)
    require(plain.texts_.tolist() == fast.texts_.tolist(), "texts_ differ between kernels")
    assert_close(plain.confidence_, fast.confidence_, "confidence_", "between kernels")


CHECKS: tuple[Check, ...] = (
    check_texts_sound,
    check_unanimous_texts,
    check_two_of_three,
    check_unlabelled,
    check_renamed_texts,
    check_bad_texts,
    check_predict_repeats_fit,
    check_kernels_agree,
)
