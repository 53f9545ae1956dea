"""Rankings from files to a table of items."""

from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize(
    "cells", [("x>y>z", "y>x>z", "z>x"), ("x|y|z", "y|x|z", "z|x"), ('["x","y","z"]',) * 3]
)
def test_rankings_of_any_spelling_are_read(cli, tmp_path, cells):
    lines = [json.dumps({"task": str(i), "worker": f"w{i}", "ranking": c}) for i, c in
             enumerate(cells)]  # fmt: skip
    (tmp_path / "r.jsonl").write_text("\n".join(lines) + "\n")
    code, out, errors = cli("aggregate", tmp_path / "r.jsonl", "--type", "rankings")
    assert code == 0, errors
    assert out.splitlines()[0].startswith("item,score,low,high,rank,")
    assert len(out.splitlines()) == 4


def test_the_method_declares_rankings(cli, tmp_path):
    (tmp_path / "r.csv").write_text("task,worker,ranking\n1,a,x>y\n2,b,x>y\n")
    code, out, errors = cli("aggregate", tmp_path / "r.csv", "-m", "plackett-luce")
    assert code == 0, errors
    assert out.splitlines()[1].startswith("x,")


def test_an_item_that_is_ranked_twice_is_refused(cli, tmp_path):
    (tmp_path / "r.csv").write_text("task,worker,ranking\n1,a,x>y\n2,b,x>y>x\n")
    output = tmp_path / "out.csv"
    code, _, errors = cli("aggregate", tmp_path / "r.csv", "--type", "rankings", "-o", output)
    assert code == 3
    assert "Item 'x' is twice in the ranking in row 2" in errors
    assert not output.exists()


def test_equal_numbers_are_a_finding(cli, tmp_path):
    (tmp_path / "n.csv").write_text("task,worker,label\n1,a,3\n1,b,3\n2,a,3\n")
    code, out, errors = cli("aggregate", tmp_path / "n.csv", "--type", "numbers")
    assert code == 0
    assert "All 3 labels are 3" in errors
    assert [line.split(",")[1] for line in out.splitlines()[1:]] == ["3", "3"]


def test_parameters_in_messages_are_those_of_the_command_line(cli, tmp_path):
    (tmp_path / "n.csv").write_text("task,worker,label\n1,a,0\n1,b,3\n")
    code, _, errors = cli("aggregate", tmp_path / "n.csv", "--type", "numbers", "-p", "scale=log")
    assert code == 3
    assert "-p scale=log needs numbers above 0" in errors
