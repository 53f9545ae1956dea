"""Every benchmark is found by its name."""

from __future__ import annotations

import ast
import importlib.util

import numpy as np
import pytest
from benchmarks.run import GROUPS, NAMES, module_of
from benchmarks.trust import house

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import TokenWise
from wisecrowd.kinds.sequences.answers import known_tags


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

    rows = ties.run(("mace", "coupled-tensor", "median"))
    assert [row.met for row in rows] == [True, True, True]
    assert [row.what.split(", ")[1] for row in rows[:2]] == ["labels", "numbers"]
    made, planted = bad_workers.with_bad_workers(
        simulate.crowd(60, 8 * simulate.OneCoinWorkers(8, 2)).labels, seed=0
    )
    assert planted.tolist() == [False] * 8 + [True] * 6
    assert made.labels_per_worker[8:].tolist() == [40] * 6
    labels, _, group = copies.copied_crowd(0, (1,), 3)
    assert any({0, 36} <= set(found.affected) for found in copies.accusations(labels))
    assert group[36] == 0


def test_the_honest_benchmark_of_spans_runs_on_little():
    from benchmarks.honest import spans

    made = simulate.sequences(50, 6, simulate.PerTask(4), density=0.3, random_state=0)
    data = spans.busiest(made.data, 4)
    truth = known_tags(dict(enumerate(made.truth)), data)
    judged = spans.Judged.of(TokenWise().fit(data), data, truth)
    assert len(judged.confidence) == len(judged.right) > 10
    assert judged.n_unmarked == 0
    assert 0 < judged.log_loss < 2
    reliability, _, loss = spans.rows_of("bsc", "all", judged)
    assert reliability.met == (float(reliability.measured.split()[0]) <= spans.MOST_ECE)
    assert loss.met == (judged.log_loss < spans.LOSS_BEFORE["bsc"])
    tags = np.array([1, 2, 0, 2, 2, 0, 1, 2])  # B I O, I I O, B I
    begun = spans.begun(data.tag_scheme, tags, np.array([0, 3, 6, 8]))
    assert begun.tolist() == [1, 2, 0, 0, 0, 0, 1, 2]
    assert judged.f1 == judged.f1_of_all > 0.5


def test_the_benchmark_of_ordered_classes_runs_on_little():
    from benchmarks.honest import ordered

    rows = ordered.judge_rows(1, n_tasks=8)
    assert [row.met is None for row in rows] == [False, False, True]
    assert all("±" in row.measured for row in rows)
    tiny = [("tiny", [ordered.judges((0.0, 0.1, 0.2), 0, 8)])]
    rows = ordered.group_rows("simulated", iter(tiny))
    assert [row.what.endswith("log loss") for row in rows[-2:]] == [True, False]
    assert len(rows) == 2 * len(ordered.METHODS) + 2


def test_honest_numbers_run_on_little():
    from benchmarks.honest import numbers

    assert numbers.exactness().met
    assert numbers.apart((0.0, 0.0, 1.5), 0.3, 1, 20) < 0.5
    assert [row.met is None for row in numbers.workers_apart(1, 8)] == [False, True, True]
    made = [numbers.crowd("both", 5, 3, seed, 20) for seed in range(2)]
    inside, width, error = numbers.covered("gaussian-em", made)
    assert 0.5 < inside <= 1
    assert width > error > 0


def test_honest_benchmark_of_pairs_runs_on_little():
    from benchmarks.honest import pairs

    (row,) = pairs.best_items(((3, 6, 1.5),), n_crowds=3)
    assert "claim" in row.measured
    rows = pairs.simulated(((5, 8, 200),), n_crowds=1)
    assert len(rows) == 9
    made = pairs.crowd("15% adversaries", (5, 20, 200), 0)
    assert made.is_adversary.any()


def parsed(text, *parts):
    return house.Source(parts, text, ast.parse(text))


def test_places_that_name_a_kind_are_counted():
    text = "isinstance(x, CrowdSets)\nx == BOXES\nk in ('sets', 'a')\nisinstance(x, int)\nx == 'a'"
    assert house.names_of_kinds(ast.parse(text)) == 3


def test_references_by_string_are_counted():
    text = "A = {'read': 'wisecrowd.io.tables:read', 'b': 'tables'}\nimport_module(A)"
    assert house.references(parsed(text, "io", "sources")) == 2
    assert house.references(parsed(text, "io", "__init__")) == 3


def test_questions_for_packs_and_helpers_are_counted():
    text = "def _f(x):\n    return isinstance(x, (int, PackedCrowd))\n\ndef __len__():\n    pass"
    assert house.questions_for_packs(ast.parse(text)) == 1
    assert house.helper_share([parsed(text, "core", "a")]) == 0.5
    assert house.is_of_packs(parsed("", "io", "packing"))
    assert not house.is_of_packs(parsed("", "io", "tables"))


def test_a_file_belongs_to_the_kind_in_its_path():
    files = [parsed("", "io", "box_rows"), parsed("", "core", "regions"), parsed("", "api")]
    assert [one.kind for one in files] == ["boxes", "boxes", None]
    assert house.packages_per_kind(files)["boxes"] == 2


def test_what_generic_code_knows_only_falls():
    layout = house.Layout.from_files(house.sources())
    assert sum(layout.asking) <= 3  # places that name a kind
    assert layout.strings <= 54  # references to modules by string
    assert layout.packed == 0  # questions for packs outside of packs


def test_base_classes_with_code():
    class Plain(CrowdLabels):
        pass

    assert house.bases_with_code(Plain)[0] == "CrowdLabels"
    assert "Plain" not in house.bases_with_code(type("Lower", (Plain,), {}))
