"""Evidence: rows of the data that show a finding."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels, CrowdNumbers, CrowdPairs, CrowdSequences
from wisecrowd.audit.evidence import N_ROWS, with_examples
from wisecrowd.core.findings import Finding
from wisecrowd.kinds.classes.audit.drift import find_drift
from wisecrowd.kinds.texts.container import CrowdTexts


def rows_of(name, affected, data, parts=None):
    found = Finding(name, "low", 1.0, tuple(affected), "Found.", "Do.")
    return with_examples([found], data, parts or {})[0].examples


@pytest.fixture
def crowd():
    """Two copiers share two errors; everybody else is right."""
    table = np.zeros((6, 5), dtype=int)
    table[[1, 4], 3:] = 1
    table[2, 0] = 1
    return CrowdLabels.from_matrix(table)


def test_a_worker_is_shown_where_others_agree_against_it(crowd):
    assert rows_of("spammers", [0], crowd)[0] == {
        "worker": "0", "task": "2", "label": "1", "others": "0 ×4",
    }  # fmt: skip


def test_copiers_are_shown_by_their_shared_errors(crowd):
    found = rows_of("clones", [3, 4], crowd)
    assert [row["task"] for row in found] == ["1", "4"]
    assert found[0] == {"task": "1", "workers": "3, 4", "label": "1", "others": "0 ×3"}


def test_drift_is_shown_before_and_after():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 80)
    table = np.where(rng.random((80, 6)) < 0.9, truth[:, None], rng.integers(0, 3, (80, 6)))
    table[40:, 2] = (truth[40:] + 1) % 3
    task, worker = np.divmod(np.arange(480), 6)
    data = CrowdLabels.from_arrays(task, worker, table.ravel(), timestamp=task)
    part = find_drift(data)
    found = rows_of("drift", [2], data, {"drift": part})
    assert [row["period"] for row in found] == ["before", "after", "after"]
    assert all(row["label"] not in row["others"] for row in found[1:])


def test_row_order_does_not_matter(crowd):
    table = crowd.to_dict()
    order = np.random.default_rng(1).permutation(len(table["task"]))
    mixed = CrowdLabels.from_arrays(*(table[name][order] for name in ("task", "worker", "label")))
    for name, who in (("spammers", [0, 3]), ("clones", [3, 4]), ("accuracy", [])):
        assert rows_of(name, who, mixed) == rows_of(name, who, crowd)


def test_never_more_than_three_rows(crowd):
    for name, who in (("spammers", [0, 1, 2, 3, 4]), ("accuracy", []), ("sparse-workers", [])):
        assert 0 < len(rows_of(name, who, crowd)) <= N_ROWS


def test_other_kinds_have_evidence():
    numbers = CrowdNumbers.from_arrays([0, 0, 0], list("abc"), [1.0, 1.5, 90.0])
    assert rows_of("noisy-workers", ["c"], numbers)[0]["others"] == "1, 1.5"
    votes = CrowdPairs.from_arrays(
        None, list("abc"), ["x"] * 3, ["y"] * 3, ["left", "left", "right"]
    )
    row = rows_of("adversaries", ["c"], votes)[0]
    assert (row["label"], row["others"]) == ("y over x", "x over y ×2")
    tags = CrowdSequences.from_arrays(["s", "s"], ["a", "b"], ["B-PER I-PER O", "O O B-LOC"])
    assert tags.annotation_text(0) == "PER 0-1"
    assert tags.annotation_text(1) == "LOC 2"
    texts = CrowdTexts.from_arrays(["s", "s"], ["a", "b"], ["a cat", ""])
    assert rows_of("empty-texts", ["b"], texts)[0]["others"] == "a cat"


def test_examples_are_plain_data_and_do_not_count_in_comparisons(crowd):
    found = with_examples([Finding("spammers", "low", 1.0, (0,), "A.", "B.")], crowd, {})[0]
    assert found == Finding("spammers", "low", 1.0, (0,), "A.", "B.")
    assert found.to_dict()["examples"][0]["task"] == "2"
