"""The table of kernels, and which of them run."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest

from wisecrowd import kernels
from wisecrowd.inference import engine
from wisecrowd.kernels import MODULES, kernels_for
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.prior import TaskPrior

FAMILIES = sorted(MODULES)


def test_every_compiled_module_is_in_the_table():
    package = Path(kernels.__file__).parents[1]
    fast = [path.relative_to(package) for path in package.glob("**/*kernels*/*_fast.py")]
    fast += [path.relative_to(package) for path in package.glob("kinds/*/kernels_fast.py")]
    names = {".".join(path.with_suffix("").parts).removesuffix("_fast") for path in fast}
    assert names == set(MODULES.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_small_problems_do_not_compile(family):
    small = kernels_for(family, kernels.COMPILE_FROM - 1)
    large = kernels_for(family, kernels.COMPILE_FROM)
    assert small.__name__ == f"wisecrowd.{MODULES[family]}"
    assert large.__name__ == f"wisecrowd.{MODULES[family]}_fast"


@pytest.mark.parametrize("family", FAMILIES)
def test_fast_kernels_have_the_names_and_arguments_of_the_reference(family):
    reference, fast = kernels_for(family, 0), kernels_for(family, kernels.COMPILE_FROM)
    assert fast.__all__
    for name in fast.__all__:
        given = inspect.signature(getattr(fast, name)).parameters
        assert list(given) == list(inspect.signature(getattr(reference, name)).parameters)


@pytest.mark.parametrize(("compile_from", "kind"), [(40, "confusion_fast"), (41, "confusion")])
def test_all_shards_run_the_kernels_of_the_whole_problem(monkeypatch, compile_from, kind):
    monkeypatch.setattr(kernels, "COMPILE_FROM", compile_from)
    monkeypatch.setattr(engine, "SMALLEST_SHARD", 10)
    labels = CrowdLabels.from_arrays(list(range(40)), ["a", "b"] * 20, [0, 1, 1, 0] * 10)
    prior = TaskPrior(np.zeros((1, 2)))
    shards = engine.MemoryEngine().cut(labels, prior, table_size=1)._shards
    assert len(shards) == 4
    for shard in shards:
        again = pickle.loads(pickle.dumps(shard))
        chosen = again.kernels("confusion")
        assert chosen.__name__ == f"wisecrowd.kinds.classes.kernels.{kind}"


def test_without_numba_the_reference_runs_at_every_size(monkeypatch):
    monkeypatch.setattr(kernels, "find_spec", lambda name: None)
    assert kernels_for("confusion", 10**9).__name__ == "wisecrowd.kinds.classes.kernels.confusion"
