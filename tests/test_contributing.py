"""The method and the kind that CONTRIBUTING shows must work as they stand."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

from wisecrowd.cli.main import run
from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.kinds import with_kind
from wisecrowd.testing import check_aggregator

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"


def block(number: int) -> str:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return blocks[number]


def test_the_example_is_a_method(tmp_path, monkeypatch):
    (tmp_path / "symmetric_confusion.py").write_text(block(0))
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("symmetric_confusion")
    assert doctest.testmod(module).failed == 0
    with pytest.warns(WisecrowdWarning, match="check_save_and_load was left out"):
        check_aggregator(module.SymmetricConfusion)


def test_the_example_is_a_kind(tmp_path, monkeypatch, capfd):
    (tmp_path / "grades_of_essays.py").write_text(block(1))
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("grades_of_essays")
    with with_kind(module.GRADES):
        assert doctest.testmod(module).failed == 0
        check_aggregator(module.MeanGrade)
        file = tmp_path / "grades.csv"
        file.write_text("essay_id,worker,grade\n1,ann,2.5\n1,bob,3.5\n2,ann,1\n")
        assert run(["aggregate", str(file), "--type", "grades"]) == 0
        assert capfd.readouterr().out == "task,value,n_labels\n1,3,2\n2,1,1\n"
