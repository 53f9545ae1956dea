"""Texts and links of tasks, and the file to label them again."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.reporting.document import render, report
from wisecrowd.reporting.tasks import example_of, relabel_rows, with_examples

HOSTILE = '"><img src=x onerror=alert(1)>'


@pytest.fixture(scope="module")
def small():
    """Two divided tasks, and one with a hostile id."""
    tasks, votes = ["t1", "=t2", HOSTILE], {"ann": "aab", "bob": "abb", "cal": "bba"}
    rows = [(t, w, said[i]) for i, t in enumerate(tasks) for w, said in votes.items()]
    return wc.CrowdLabels.from_arrays(*zip(*rows, strict=True))


@pytest.fixture(scope="module")
def made(small):
    return report(small, method="majority-vote").summary


def examples_in(summary):
    return {row["task"]: row.get("example") for row in summary["tasks"]["rows"]}


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json"])
def test_a_file_names_texts_and_addresses(made, small, tmp_path, suffix):
    path = tmp_path / f"tasks.{suffix}"
    rows = [
        {"task": "t1", "text": "dusk", "image_url": "https://host.invalid/1.jpg"},
        {"task": "t1", "text": "another", "image_url": ""},
        {"task": HOSTILE, "text": "</td><script>alert(1)</script>", "image_url": "javascript:x"},
        {"task": "unknown", "text": "no", "image_url": ""},
    ]
    if suffix == "csv":
        quoted = [[f'"{v.replace(chr(34), 2 * chr(34))}"' for v in row.values()] for row in rows]
        path.write_text("\n".join(["task,text,image_url", *map(",".join, quoted)]) + "\n")
    else:
        lines = [json.dumps(row) for row in rows]
        path.write_text(f"[{','.join(lines)}]" if suffix == "json" else "\n".join(lines))
    found = with_examples(made, small, path)
    assert examples_in(found) == {
        "t1": {"text": "dusk", "url": "https://host.invalid/1.jpg"},
        "=t2": None,
        HOSTILE: {"text": "</td><script>alert(1)</script>"},
    }
    page = render(found)
    assert "<script>alert" not in page
    assert "javascript:x" not in page
    assert page.count('href="https://host.invalid/1.jpg"') == 1


def test_exports_bring_their_own_texts(made, small, tmp_path):
    export = tmp_path / "export.json"
    data = {"photo": "https://host.invalid/1.jpg", "note": "night", "size": 3}
    export.write_text(json.dumps([{"id": "t1", "data": data, "annotations": []}]))
    found = with_examples(made, small, files=[str(export), "missing.json", "labels.csv"])
    assert examples_in(found)["t1"] == {"text": "night", "url": "https://host.invalid/1.jpg"}
    other = tmp_path / "other.json"
    other.write_text('{"rows": 3}')
    assert with_examples(made, small, files=[str(other)]) == made


def test_mappings_and_tables(made, small):
    for tasks in (
        {"t1": "dusk"},
        {"task": ["t1", "t9"], "text": ["dusk", "dawn"]},
        {"t1": {"Text": "dusk"}},
    ):
        assert examples_in(with_examples(made, small, tasks))["t1"] == {"text": "dusk"}


def test_spans_have_the_text_that_they_are_about():
    data = simulate.sequences(6, 3, simulate.Dense(), mean_length=4, random_state=0).data
    words = np.empty(6, dtype=object)
    words[:] = [["Ada"] * n for n in data.length.tolist()]
    rows = [{"task": str(i)} for i in range(6)]
    told = replace(data, task_columns={**data.task_columns, "words": words})
    found = examples_in(with_examples({"tasks": {"rows": rows}}, told))
    assert found["3"] == {"text": " ".join(words[3])}


def test_links_to_the_platform_are_escaped(made, small):
    found = with_examples(made, small, task_url="https://host.invalid/t/{task}?x=1&y=2")
    links = re.findall(r'<th scope="row"><a href="([^"]*)"', render(found))
    assert "https://host.invalid/t/t1?x=1&amp;y=2" in links
    assert "https://host.invalid/t/%3Dt2?x=1&amp;y=2" in links
    assert any(link.startswith("https://host.invalid/t/%22%3E%3Cimg%20src") for link in links)
    for wrong in ("javascript:alert({task})", "https://host.invalid/t", "{task}"):
        with pytest.raises(ParameterError, match="not the address of a task"):
            with_examples(made, small, task_url=wrong)


def test_a_file_without_ids_is_refused(made, small, tmp_path):
    path = tmp_path / "tasks.csv"
    path.write_text("name,text\nt1,dusk\n")
    with pytest.raises(DataError, match="no column of task ids"):
        with_examples(made, small, path)


def test_only_web_addresses_become_links():
    for address in ("javascript:alert(1)", "data:text/html,x", "//host/x", "http:", "ftp://h/x", 7):
        assert "url" not in example_of({"url": address})
    assert example_of({"image": "photos/1.jpg"}) == {"text": "photos/1.jpg"}
    assert example_of({"Input.image_url": "http://h.invalid/x"}) == {"url": "http://h.invalid/x"}


def test_rows_to_relabel(made, small):
    rows = relabel_rows(with_examples(made, small, {"t1": "dusk"}))
    assert rows[0] == ["task", "text", "url", "votes", "label"]
    found = {row[0]: row for row in rows[1:]}
    assert found["t1"][1:] == ["dusk", "", "ann: a; bob: a; cal: b", ""]
    assert "'=t2" in found  # a spreadsheet would run it; reading it again restores it
    assert relabel_rows({**made, "tasks": {"rows": []}}) is None
