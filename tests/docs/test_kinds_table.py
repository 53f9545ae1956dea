"""The table of kinds on the front page says what the code does."""

from __future__ import annotations

from pathlib import Path

import pytest

from wisecrowd.cli.main import run
from wisecrowd.core.kinds import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "index.md"


@pytest.fixture
def table(site_module):
    return site_module("kinds_table")


def test_the_front_page_has_the_table(table):
    text = PAGE.read_text(encoding="utf-8")
    assert table.kinds_table() in text, "run python docs/_site/kinds_table.py"


def test_every_kind_has_a_row_with_a_guide(table):
    assert set(table.GUIDES) == set(KINDS)
    for kind in KINDS.values():
        assert len(table.row(kind)) == len(table.COLUMNS)


@pytest.mark.parametrize(
    "name", sorted(set(KINDS) - {"rankings"})
)  # there is no simulator of rankings
def test_who_can_be_asked_next(table, name, tmp_path, capsys):
    folder = str(tmp_path / "crowd")
    size = [] if name == "labels" else ["--n-workers", "6"]
    assert run(["simulate", folder, "--type", name, "--tasks", "12", *size, "-q"]) == 0
    answers = f"{folder}/answers.csv"
    code = run(["next", answers, "--tasks", answers, "--type", name, "-n", "1", "-q"])
    assert (code == 0) == table.asks(KINDS[name])
