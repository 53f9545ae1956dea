"""The table of kernels, and which of them run."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest

from wisecrowd import kernels
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.task_prior import TaskPrior
from wisecrowd.engines import memory
from wisecrowd.kernels import KERNELS, kernels_for

FAMILIES = sorted({family for family, _ in KERNELS})


def test_every_folder_is_in_the_table():
    folder = Path(kernels.__file__).parent
    files = [path.relative_to(folder) for path in folder.glob("*/[!_]*.py")]
    found = {tuple(path.with_suffix("").parts) for path in files}
    assert found == set(KERNELS)
    assert [KERNELS[key] for key in sorted(found)] == [
        f"wisecrowd.kernels.{family}.{kind}" for family, kind in sorted(found)
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_small_problems_do_not_compile(family):
    small = kernels_for(family, kernels.COMPILE_FROM - 1)
    large = kernels_for(family, kernels.COMPILE_FROM)
    assert small.__name__ == f"wisecrowd.kernels.{family}.reference"
    assert large.__name__ == f"wisecrowd.kernels.{family}.fast"


@pytest.mark.parametrize("family", FAMILIES)
def test_fast_kernels_have_the_names_and_arguments_of_the_reference(family):
    reference, fast = kernels_for(family, 0), kernels_for(family, kernels.COMPILE_FROM)
    assert fast.__all__
    for name in fast.__all__:
        given = inspect.signature(getattr(fast, name)).parameters
        assert list(given) == list(inspect.signature(getattr(reference, name)).parameters)


@pytest.mark.parametrize(("compile_from", "kind"), [(40, "fast"), (41, "reference")])
def test_all_shards_run_the_kernels_of_the_whole_problem(monkeypatch, compile_from, kind):
    monkeypatch.setattr(kernels, "COMPILE_FROM", compile_from)
    monkeypatch.setattr(memory, "SMALLEST_SHARD", 10)
    labels = CrowdLabels.from_arrays(list(range(40)), ["a", "b"] * 20, [0, 1, 1, 0] * 10)
    prior = TaskPrior(np.zeros((1, 2)))
    shards = memory.MemoryEngine().cut(labels, prior, table_size=1)._shards
    assert len(shards) == 4
    for shard in shards:
        again = pickle.loads(pickle.dumps(shard))
        chosen = again.kernels("confusion")
        assert chosen.__name__ == f"wisecrowd.kernels.confusion.{kind}"


def test_without_numba_the_reference_runs_at_every_size(monkeypatch):
    monkeypatch.setattr(kernels, "find_spec", lambda name: None)
    assert kernels_for("confusion", 10**9).__name__ == "wisecrowd.kernels.confusion.reference"
