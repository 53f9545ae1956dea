from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.io.formats import format_of
from wisecrowd.io.sniffing import sniff
from wisecrowd.io.sources import Source


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "task,worker,label\n1,a,x\n"),
        ("a.csv", "HITId,WorkerId,answer\n1,a,x\n"),
        ("a.csv", "id,text,score\n1,hello,3\n"),
        ("a.csv", "task,wroker,lable\n1,a,x\n"),
        ("a.tsv", "task\tworker\tlabel\n"),
        ("a.jsonl", '{"task": 1, "worker": "a", "label": "x"}\n'),
        ("a.csv", ""),
        ("a.csv", "\0\1\2"),
    ],
)
def test_plain_tables_are_no_exports(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    assert sniff(Source(path)) is None
    assert format_of(Source(path)) == path.suffix[1:]


def test_an_unknown_json_file_is_said_to_be_unknown(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"some": "thing"}')
    with pytest.raises(ParameterError, match=r"nor is its content what a known platform writes"):
        format_of(Source(path))


def test_a_first_record_longer_than_the_window_is_recognised_by_its_keys(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(
        json.dumps([{"id": 1, "annotations": [], "data": {"text": "x" * 10}, "z": "y" * 99999}])
    )
    assert sniff(Source(path)) == "label-studio"


def test_missing_files_and_standard_input_are_not_looked_at(tmp_path):
    assert sniff(Source(tmp_path / "none.csv")) is None
    assert sniff(Source(None)) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_not_looked_at(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    assert sniff(Source(tmp_path / "a.csv")) is None


def test_reading_a_plain_table_loads_no_platform(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("task,worker,label\n1,a,x\n")
    code = (
        f"import sys, wisecrowd; wisecrowd.read({str(path)!r});"
        "print([m for m in sys.modules if m.startswith('wisecrowd.io.platforms.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
