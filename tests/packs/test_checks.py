"""Checks of fits to packs: those of memory where all tasks are looked at, and sums where not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.packs.test_fits import crowd_table

import wisecrowd as wc
from wisecrowd.aggregation import DawidSkene, HierarchicalDawidSkene, OneCoin
from wisecrowd.core.exceptions import FindingWarning
from wisecrowd.io.tables import write_table
from wisecrowd.kinds.classes.packed import checks as pack_checks
from wisecrowd.packs.fit import fit_pack


def packed(folder, table, **options):
    write_table(folder / "crowd.csv", table)
    wc.pack(folder / "crowd.csv", folder / "crowd.pack", shards=4, **options)
    return folder / "crowd.pack"


def with_clones(table):
    """Return a crowd in which three workers repeat the labels of another one."""
    mine = table["worker"] == "w1"
    extra = {name: [column] for name, column in table.items()}
    for copy in ("x1", "x2", "x3"):
        for name, column in table.items():
            extra[name].append(
                np.full(mine.sum(), copy, object) if name == "worker" else column[mine]
            )
    return {name: np.concatenate(columns) for name, columns in extra.items()}


def two_parts(n_tasks=200):
    """Return two crowds that share no task, the second one smaller."""
    one, other = crowd_table(n_tasks=n_tasks), crowd_table(seed=1, n_tasks=n_tasks // 4)
    other["task"] = np.array([f"other{i}" for i in other["task"]], dtype=object)
    other["worker"] = np.array([f"z{j}" for j in other["worker"]], dtype=object)
    return {name: np.concatenate([one[name], other[name]]) for name in one}


def test_findings_are_those_of_memory(tmp_path):
    pack = packed(tmp_path, with_clones(crowd_table(n_tasks=300)), gold={"t000": "a"})
    with pytest.warns(FindingWarning, match="gave exactly the labels"):
        found = fit_pack(DawidSkene(), pack)
    with pytest.warns(FindingWarning, match="gave exactly the labels"):
        model = DawidSkene().fit(wc.read(tmp_path / "crowd.csv"), gold={"t000": "a"})
    assert found.unchecked == ()
    facts = [
        [(f.id, f.severity, f.affected) for f in one]
        for one in (found.fit.findings, model.findings_)
    ]
    assert facts[0] == facts[1]
    assert [f.score for f in found.fit.findings] == pytest.approx(
        [f.score for f in model.findings_]
    )


@pytest.mark.parametrize("patterns", ["never", "always"])
def test_separate_parts_are_sums_over_shards(tmp_path, monkeypatch, patterns):
    pack = packed(tmp_path, two_parts(), patterns=patterns)
    expected = {f.id: f for f in OneCoin().fit(wc.read(pack)).findings_}["separate-parts"]
    monkeypatch.setattr(pack_checks, "ENOUGH", 200)
    found = fit_pack(OneCoin(), pack)
    (finding,) = (f for f in found.fit.findings if f.id == "separate-parts")
    assert finding.score == pytest.approx(expected.score)
    assert replace(finding, score=expected.score) == expected
    assert found.unchecked == ()
    monkeypatch.setattr(pack_checks, "MOST_PASSES", 1)
    assert fit_pack(OneCoin(), pack).unchecked == ("separate-parts",)


def test_what_is_not_checked_is_named(tmp_path, monkeypatch):
    table = crowd_table(n_tasks=100)
    many = {"task": ["t000"] * 30, "worker": [f"once{i}" for i in range(30)], "label": ["a"] * 30}
    joined = {k: np.concatenate([v, np.array(many[k], dtype=object)]) for k, v in table.items()}
    monkeypatch.setattr(pack_checks, "ENOUGH", 150)
    found = fit_pack(OneCoin(), packed(tmp_path, joined))
    assert found.unchecked == ("ballot-stuffing by workers of one task",)


def test_a_fit_that_does_not_converge_says_so(tmp_path):
    method = HierarchicalDawidSkene(tol=0.0)
    with pytest.warns(FindingWarning, match="did not converge"):
        found = fit_pack(method, packed(tmp_path, crowd_table()))
    assert [f.id for f in found.fit.findings][-1] == "not-converged"
