"""Every benchmark is found by its name."""

from __future__ import annotations

import importlib.util

import pytest
from benchmarks.run import GROUPS, NAMES, module_of

from wisecrowd import simulate


@pytest.mark.parametrize("name", [*NAMES, *(name for group in GROUPS.values() for name in group)])
def test_every_name_is_a_module_that_runs(name):
    found = importlib.util.find_spec(module_of(name))
    assert found is not None
    assert "\ndef run(" in found.loader.get_source(found.name)


def test_a_name_without_a_module_is_refused():
    with pytest.raises(SystemExit, match="There is no benchmark 'kernel'; there are crowd_kit"):
        module_of("kernel")


def test_honest_benchmarks_of_the_audit_run_on_little():
    from benchmarks.honest import bad_workers, copies, ties

    (row,) = ties.run(("mace", "coupled-tensor"))
    assert row.met
    made, planted = bad_workers.with_bad_workers(
        simulate.crowd(60, 8 * simulate.OneCoinWorkers(8, 2)).labels, seed=0
    )
    assert planted.tolist() == [False] * 8 + [True] * 6
    assert made.labels_per_worker[8:].tolist() == [40] * 6
    labels, _, group = copies.copied_crowd(0, (1,), 3)
    assert any({0, 36} <= set(found.affected) for found in copies.accusations(labels))
    assert group[36] == 0
