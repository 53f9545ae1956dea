"""The examples of the guide run, and print what it shows."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from wisecrowd.audit.crowd_audit import PARTS
from wisecrowd.cli.main import run

GUIDE = Path(__file__).parents[2] / "docs" / "audit.md"


def test_python_examples():
    found = doctest.testfile(str(GUIDE), module_relative=False, encoding="utf-8")
    assert found.attempted >= 8
    assert found.failed == 0


def test_commands_have_their_options(capsys):
    text = GUIDE.read_text(encoding="utf-8")
    assert run(["audit", "--help"]) == 0
    shown = capsys.readouterr().out
    options = set(re.findall(r"^wisecrowd audit .*?(--?[a-z-]+)", text, re.M))
    assert options >= {"--json", "--fail-on", "--prune-to", "-o"}
    for option in options:
        assert option in shown


def test_parts_that_the_guide_names_exist():
    assert {"spammers", "identifiability"} <= set(PARTS)
