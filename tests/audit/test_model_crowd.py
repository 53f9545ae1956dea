"""Crowds of language models: a finding that asks for known answers, unless they are there."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels
from wisecrowd.audit import audit_crowd

MODELS = ["gpt-4o", "claude-3", "gemini_pro"]


def judged(workers, **columns):
    truth = np.random.default_rng(0).integers(0, 2, 40)
    rows = [(i, w, "ab"[truth[i] if i % 5 else j % 2]) for i in range(40)
            for j, w in enumerate(workers)]  # fmt: skip
    return CrowdLabels.from_arrays(*map(list, zip(*rows, strict=True)), **columns)


def found_in(labels, **options):
    audit = audit_crowd(labels, parts=["models"], **options)
    return [finding for finding in audit.findings if finding.id == "model-workers"]


def test_models_only_are_a_finding_that_asks_for_known_answers():
    (finding,) = found_in(judged(MODELS))
    assert (finding.severity, finding.affected) == ("medium", tuple(sorted(MODELS)))
    for words in ("depend on each other", "1.6 to 3", "6 to 44 points lower"):
        assert words in finding.explanation
    assert "about 60 tasks" in finding.remedy


@pytest.mark.parametrize("workers", [["ann", *MODELS], ["ann", "bob"], ["gpt-4o"]])
def test_a_person_among_them_or_one_model_is_none(workers):
    assert found_in(judged(workers)) == []


def test_known_answers_need_no_finding():
    assert found_in(judged(MODELS), gold={0: "a", 1: "b"}) == []


def test_the_kind_of_worker_decides():
    assert found_in(judged(["x", "y"], worker_kind=["model"] * 80))
    assert not found_in(judged(MODELS, worker_kind=["human"] * 120))
