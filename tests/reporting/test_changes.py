"""What changed since an earlier report, and summaries for machines."""

from __future__ import annotations

import copy
import json

import jsonschema
import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.core.exceptions import DataError
from wisecrowd.reporting import report, report_schema
from wisecrowd.reporting.changes import changes_since, read_summary
from wisecrowd.reporting.document import summarize
from wisecrowd.reporting.markdown import escaped, markdown_of
from wisecrowd.simulate.other_kinds import SIMULATORS, simulate_kind


@pytest.fixture(scope="module")
def crowds():
    """Return a good crowd, and the same with a spammer and without its first tasks."""
    good = simulate.crowd(80, 6 * simulate.OneCoinWorkers(8, 2), n_classes=3, random_state=1)
    task, worker, label = (np.asarray(column) for column in
                           (good.labels.task, good.labels.worker, good.labels.label))  # fmt: skip
    rng = np.random.default_rng(0)
    more = np.arange(80)
    spam = CrowdLabels.from_arrays(
        np.concatenate([task, more]),
        np.concatenate([worker, np.full(80, 99)]),
        np.concatenate([label, rng.integers(0, 3, 80)]),
    )
    return good.labels, spam


@pytest.fixture(scope="module")
def summaries(crowds):
    return tuple(summarize(labels) for labels in crowds)


def test_new_labels_findings_and_workers_are_named(summaries):
    found = changes_since(*summaries)
    numbers = {row["name"]: row for row in found["numbers"]}
    assert (numbers["n_labels"]["before"], numbers["n_labels"]["after"]) == (400, 480)
    assert numbers["n_labels"]["clear"] is None
    assert isinstance(numbers["agreement"]["clear"], bool)
    assert "n_tasks" not in numbers
    assert "spammers" in {step["id"] for step in found["findings"]["new"]}
    assert found["workers"]["new"] == ["99"]
    assert found["workers"]["gone"] == []


def test_backwards_they_are_gone(summaries):
    found = changes_since(*summaries[::-1])
    assert "spammers" in {step["id"] for step in found["findings"]["gone"]}
    assert found["workers"]["gone"] == ["99"]


def test_the_same_report_changed_nothing(summaries):
    found = changes_since(summaries[1], summaries[1])
    assert found["numbers"] == []
    assert found["findings"]["new"] == found["findings"]["gone"] == []
    assert found["workers"] == {"new": [], "gone": [], "changed": []}
    assert "Nothing changed." in markdown_of(summaries[1] | {"changes": found})


def test_workers_change_if_their_intervals_do_not_overlap(summaries):
    old = copy.deepcopy(summaries[0])
    row = old["workers"]["rows"][0]
    row.update(accuracy=0.1, low=0.05, high=0.15)
    new = copy.deepcopy(summaries[0])
    new["workers"]["rows"][0].update(accuracy=0.8, low=0.7, high=0.9)
    (changed,) = changes_since(old, new)["workers"]["changed"]
    assert (changed["worker"], changed["value"], changed["before"]) == (
        row["worker"], "accuracy", 0.1,
    )  # fmt: skip


def test_nobody_is_new_if_the_old_report_does_not_show_all(summaries):
    old = copy.deepcopy(summaries[0])
    old["workers"]["total"] += 1
    assert changes_since(old, summaries[1])["workers"]["new"] is None


def test_the_page_and_markdown_show_the_changes(crowds, summaries):
    made = report(crowds[1], against=summaries[0])
    assert "Since the last report" in made.html
    assert "1 new worker: <bdi>99</bdi>" in made.html
    assert "new finding: spammers" in made.markdown


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "is not the summary of a report"),
        ("{", "is not JSON"),
        ('{"schema": "wisecrowd-report", "version": 99}', "has version 99"),
        ('{"schema": "wisecrowd-report", "version": 2}', "is damaged"),
        (
            '{"schema": "wisecrowd-report", "version": 2, "verdict": {}, "next": [], '
            '"workers": {"rows": [1]}}',
            "is damaged",
        ),
    ],
)
def test_other_files_are_refused(content, message, tmp_path):
    file = tmp_path / "old.json"
    file.write_text(content)
    with pytest.raises(DataError, match=message):
        read_summary(file)


def test_other_kinds_are_refused(summaries):
    with pytest.raises(DataError, match="about numbers"):
        changes_since(summaries[0] | {"kind": "numbers"}, summaries[1])


@pytest.mark.parametrize("kind", SIMULATORS)
def test_summaries_of_every_kind_are_as_the_schema_says(kind):
    votes = kind in ("pairs", "same")
    crowd = simulate_kind(kind, 80 if votes else 12, 6, "per-task:4", 0, {})
    summary = json.loads(json.dumps(summarize(crowd.data)))
    jsonschema.validate(summary, report_schema())
    changed = summary | {"changes": changes_since(summary, summary)}
    jsonschema.validate(changed, report_schema())
    assert markdown_of(changed).startswith("## Crowd report")


def test_the_schema_refuses_other_severities(summaries):
    broken = copy.deepcopy(summaries[1])
    broken["next"][0]["severity"] = "terrible"
    jsonschema.validate(summaries[1], report_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, report_schema())


def test_markdown_of_hostile_ids():
    hostile = ["<img src=x>", "@everybody", "a|b", "`rm`", "[x](http://evil)", "line\nbreak"]
    task, worker = np.divmod(np.arange(240), 6)
    label = np.where(worker == 1, np.random.default_rng(0).integers(0, 3, 240), task % 3)
    labels = CrowdLabels.from_arrays(task, np.array(hostile, dtype=object)[worker], label)
    text = report(labels).markdown
    assert "<img" not in text
    assert "@everybody" not in text
    assert "](http" not in text
    assert all(line.count("|") - line.count("\\|") in (0, 3, 5) for line in text.splitlines())


def test_escaped_text_has_one_line():
    assert escaped("a\n# b") == "a \\# b"
