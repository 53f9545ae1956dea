"""Audit of texts: planted workers are found, honest crowds are not accused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.audit import audit_crowd
from wisecrowd.kinds.texts.audit import (
    find_copied_texts,
    find_text_errors,
    measure_text_agreement,
    text_view,
)
from wisecrowd.kinds.texts.container import CrowdTexts


def planted(seed=3):
    """Return texts by workers 0 constant, 1 empty, 2 of other tasks, 4 a copy of 3."""
    made = simulate.texts(120, 15, simulate.PerTask(5), random_state=seed)
    text, worker, task = made.data.text.copy(), made.data.worker, made.data.task
    text[worker == 0], text[worker == 1] = "thank you", ""
    of_two = np.flatnonzero(worker == 2)
    text[of_two] = np.random.default_rng(0).permutation(text[worker > 4])[: len(of_two)]
    place = {(i, j): e for e, (i, j) in enumerate(zip(task, worker, strict=True))}
    for i in range(120):
        if (i, 3) in place and (i, 4) in place:
            text[place[i, 4]] = text[place[i, 3]]
    return replace(made.data, text=text)


def test_planted_workers_are_found():
    found = {one.id: set(one.affected) for one in audit_crowd(planted()).findings}
    assert found == {
        "constant-texts": {0}, "empty-texts": {1}, "unrelated-texts": {2}, "copied-texts": {3, 4},
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_honest_crowds_have_no_findings(seed):
    rates = {"substitute": 0.05 * (1 + seed), "drop": 0.04 * seed, "shared": 0.3 * seed}
    made = simulate.texts(80, 10, simulate.PerTask(4), mean_length=5, random_state=seed, **rates)
    assert list(audit_crowd(made.data).findings) == []


def test_two_good_workers_who_agree_against_the_others_are_not_copies():
    rates = {"substitute": 0.03, "drop": 0.03, "insert": 0.02}
    made = simulate.texts(80, 6, simulate.PerTask(4), random_state=297, **rates)
    assert not find_copied_texts(made.data).copied.any()
    blind = replace(text_view(made.data), right=np.zeros(made.data.n_annotations, dtype=bool))
    assert find_copied_texts(made.data, view=blind).copied.sum() == 3


def test_a_text_that_is_repeated_now_and_then_is_no_finding():
    texts = [f"text number {i}" for i in range(12) for _ in range(4)]
    texts[0] = texts[4] = texts[8] = texts[12] = "not audible"
    data = CrowdTexts.from_arrays(np.repeat(np.arange(12), 4), list("abcd") * 12, texts)
    assert not find_text_errors(data).constant.any()


def test_empty_texts_that_others_give_too_are_answers():
    texts = [("" if i % 2 else f"text number {i}") for i in range(12) for _ in range(4)]
    data = CrowdTexts.from_arrays(np.repeat(np.arange(12), 4), list("abcd") * 12, texts)
    report = find_text_errors(data)
    assert not report.empty.any()
    assert not report.constant.any()


def test_error_rates_and_intervals():
    made = simulate.texts(150, 8, simulate.PerTask(5), random_state=1)
    report = find_text_errors(made.data)
    assert np.corrcoef(report.error_rate, made.mistakes.sum(axis=1))[0, 1] > 0.9
    assert ((report.low <= report.error_rate) & (report.error_rate <= report.high)).all()


def test_agreement_by_hand():
    texts = ["a b", "a b", "a c", "x", "y", "z"]
    report = measure_text_agreement(
        CrowdTexts.from_arrays([1, 1, 1, 2, 2, 3], list("abcabc"), texts)
    )
    assert report.task_difference[:2] == pytest.approx([1 / 3, 1])
    assert np.isnan(report.task_difference[2])
    assert (report.difference, report.equal) == pytest.approx((2 / 3, 1 / 6))


def test_texts_without_a_common_wording():
    texts = [f"{j}x {j}y {i}z{j}" for i in range(20) for j in range(3)]
    data = CrowdTexts.from_arrays(np.repeat(np.arange(20), 3), list("abc") * 20, texts)
    assert [one.id for one in measure_text_agreement(data).findings()] == ["no-common-wording"]


def test_parts_without_enough_data_are_skipped():
    data = CrowdTexts.from_arrays([1, 2], ["a", "b"], ["x", "y"])
    assert set(audit_crowd(data).skipped) == {"errors", "copies", "agreement"}


def test_pairs_of_copies_have_counts():
    report = find_copied_texts(planted())
    assert (report.first[0], report.second[0]) == (3, 4)
    assert report.n_equal[0] == report.n_wrong[0] >= 4
    assert report.copied.tolist().count(True) == 1
