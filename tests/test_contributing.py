"""The method, the kind and the audit question that CONTRIBUTING shows must work as they stand."""

import doctest
import importlib
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wisecrowd.audit import audit_crowd
from wisecrowd.core.exceptions import DataError, WisecrowdWarning
from wisecrowd.core.kinds import with_kind
from wisecrowd.kinds.numbers.audit import PLAN
from wisecrowd.kinds.numbers.container import CrowdNumbers
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
    (tmp_path / "grades.py").write_text(block(1))
    (tmp_path / "grades.csv").write_text("essay_id,worker,grade\n1,ann,2.5\n1,bob,3.5\n2,ann,1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("grades")
    monkeypatch.setitem(sys.modules, "grades", module)  # and removed after the test
    with with_kind(module.GRADES):
        assert doctest.testmod(module).failed == 0
        columns = [1, 1], ["ann", "bob"], [2.0, 5.0]
        weighted = module.Grades.from_arrays(*columns, weight=[2.0, 1.0])
        assert module.MeanGrade().fit(weighted).values_.tolist() == [3.0]
    names: dict[str, Any] = {}
    exec(block(2), names)
    assert names["table"].to_pydict() == {"task": ["1", "2"], "value": [3.0, 1.0]}
    assert names["values"].tolist() == [3.0, 1.0]
    assert names["error"] == 0
    assert capfd.readouterr().out == "task,value,n_labels\n1,3,2\n2,1,1\n"
    exec(block(3), names)
    assert names["Marks"].from_arrays(*columns).value.tolist() == [2.0, 5.0]
    with pytest.raises(DataError, match="A grade is -5; give grades from 0 up"):
        names["Marks"].from_arrays([1, 1], ["ann", "bob"], [2.0, -5.0])


def test_the_example_is_an_audit_question(tmp_path, monkeypatch):
    (tmp_path / "rounding.py").write_text(block(4))
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("rounding")
    line = re.search(r'"rounding": \w+', PAGE.read_text(encoding="utf-8"))
    for name, part in eval(f"{{{line[0]}}}", vars(module)).items():
        monkeypatch.setitem(PLAN.parts, name, part)
    rng = np.random.default_rng(0)
    task, worker = np.divmod(np.arange(300), 5)
    honest = rng.normal(0, 3, 60)[task] + rng.normal(0, 0.3, 300)
    rounded = np.where(worker == 3, np.round(honest), honest)
    audits = [
        audit_crowd(CrowdNumbers.from_arrays(task, worker, value)) for value in (honest, rounded)
    ]
    quiet, found = [{one.id: one for one in audit.findings} for audit in audits]
    assert "round-numbers" not in quiet
    assert found["round-numbers"].affected == (3,)
    assert len(found["round-numbers"].examples) == 3
    assert audits[1].tables()["rounding"]["whole"].tolist() == [0, 0, 0, 1, 0]
