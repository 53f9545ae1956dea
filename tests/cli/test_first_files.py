"""Files whose columns or options a newcomer names in an unexpected way."""

from __future__ import annotations

import itertools

import pytest

VOTES = "".join(f"{a},{b},{max(a, b)},w{j}\n" for j in range(4)
                for a, b in itertools.permutations("xyz", 2))  # fmt: skip


@pytest.fixture
def votes(tmp_path):
    def write(header):
        path = tmp_path / "votes.csv"
        path.write_text(f"{header}\n{VOTES}")
        return str(path)

    return write


def test_voters_are_workers(cli, votes):
    result = cli("inspect", votes("left,right,winner,voter"))
    assert "worker = voter" in result.out
    assert "by 4 workers" in result.out


def test_an_unused_column_may_be_the_worker(cli, votes):
    result = cli("inspect", votes("left,right,winner,colour"))
    assert "by unknown workers" in result.out
    assert "repeats" not in result.out
    assert "not used: 'colour'" in result.out
    assert "--worker NAME" in result.out
    assert "by 4 workers" in cli("inspect", votes("left,right,winner,colour"),
                                       "--worker", "colour").out  # fmt: skip


def test_an_audit_does_not_blame_unknown_workers(cli, votes):
    result = cli("audit", votes("left,right,winner,colour"))
    assert "Contradictions cannot be counted: the workers are unknown" in result.err
    assert "Voters cannot be compared: the workers are unknown" in result.err


def test_a_report_does_not_list_unknown_workers(cli, votes, tmp_path):
    page = tmp_path / "page.html"
    assert cli("report", votes("left,right,winner,colour"), "-o", str(page)).code == 0
    assert 'id="worker-table"' not in page.read_text()
    cli("report", votes("left,right,winner,voter"), "-o", str(page))
    assert 'id="worker-table"' in page.read_text()


@pytest.mark.parametrize("sides", [("model_left", "model_right"), ("answer_a", "answer_b")])
def test_columns_of_sides_are_suggested(cli, votes, sides):
    path = votes(f"{sides[0]},{sides[1]},winner,judge")
    result = cli("inspect", path)
    assert result.code == 3
    assert f"--left {sides[0]} and --right {sides[1]}" in result.err
    assert cli("inspect", path, "--left", sides[0], "--right", sides[1]).code == 0
