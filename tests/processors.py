"""The numeric tests as other processors would run them: ``python tests/processors.py``.

Libraries choose their code by the processor, and round differently in consequence. Environment
variables make this processor run what older and newer ones would:

- the baseline: NumPy without its optional instructions, OpenBLAS as of 2004, generic code of numba
  and PyTorch;
- OpenBLAS as of other processors. A kind that this processor cannot execute is reported and
  skipped.

The baseline runs all numeric tests but two of memory, the others those that depend on linear
algebra. ``--slow`` adds the slow tests, and ``--dry-run`` prints what would be run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

BASELINE = "Prescott"
CORES = ("Haswell", "SkylakeX")
LINEAR_ALGEBRA = (
    "tests/golden", "tests/kinds/classes/families/test_dependence.py",
    "tests/kinds/classes/families/moments",
    "tests/kinds/classes/audit/test_identifiability.py",
    *(
        f"tests/kinds/classes/methods/test_{method}.py"
        for method in (
            "coupled_nmf", "coupled_tensor", "eigen_ratio", "group_aware_majority_vote", "kos",
            "mmsr", "multi_spa", "rank_one", "spectral_dawid_skene", "spectral_meta_learner",
            "symmetric_nmf",
        )
    ),
)  # fmt: skip
EVERYTHING = (
    "tests/golden", "tests/kinds", "tests/inference", "tests/kernels",
    "tests/audit", "tests/engines", "tests/metrics", "tests/nn", "tests/simulate", "src",
)  # fmt: skip
NOT_NUMERIC = "little_memory"  # minutes, for what has nothing to do with rounding
# Solves, decomposes and multiplies matrices of sizes at which OpenBLAS takes its fast paths.
PROBE = """
import numpy as np
import scipy.linalg

x = np.random.default_rng(0).normal(size=(200, 200))
np.linalg.svd(x @ x.T)
np.linalg.solve(x, x[:, 0])
scipy.linalg.eigh(x @ x.T)
"""


def dispatched() -> list[str]:
    """Return the instructions that NumPy uses here beyond those that it was built to need."""
    try:
        from numpy._core import _multiarray_umath as built
    except ImportError:  # NumPy 1
        from numpy.core import _multiarray_umath as built
    return [name for name in built.__cpu_dispatch__ if built.__cpu_features__.get(name)]


def settings() -> list[tuple[str, dict[str, str], tuple[str, ...]]]:
    """Return name, environment and tests of every processor."""
    baseline = {
        "OPENBLAS_CORETYPE": BASELINE, "NUMBA_CPU_NAME": "generic",
        "ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41",  # PyTorch
    }  # fmt: skip
    if names := dispatched():
        baseline["NPY_DISABLE_CPU_FEATURES"] = " ".join(names)
    others = [(core, {"OPENBLAS_CORETYPE": core}, LINEAR_ALGEBRA) for core in CORES]
    return [("the baseline", baseline, EVERYTHING), *others]


def can_execute(variables: dict[str, str]) -> bool:
    """Return whether linear algebra works with these variables, or is an illegal instruction."""
    command = [sys.executable, "-c", PROBE]
    found = subprocess.run(command, env=os.environ | variables, capture_output=True, check=False)
    return found.returncode == 0


def main() -> int:
    """Run the tests for every processor; return 1 if any failed."""
    parser = argparse.ArgumentParser(description="Run the numeric tests as other processors.")
    parser.add_argument("--dry-run", action="store_true", help="print the settings only")
    parser.add_argument("--slow", action="store_true", help="run the slow tests, too")
    asked = parser.parse_args()
    failed = []
    for name, variables, tests in settings():
        shown = " ".join(f"{key}='{value}'" for key, value in variables.items())
        if not can_execute(variables):
            print(f"Skipped: this processor cannot run as {name} ({shown}).", flush=True)
            continue
        print(f"As {name}: {shown}", flush=True)
        if asked.dry_run:
            continue
        began = time.monotonic()
        command = [
            sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal",
            "-k", f"not {NOT_NUMERIC}", *([] if asked.slow else ["-m", "not slow"]), *tests,
        ]  # fmt: skip
        variables = {"OMP_NUM_THREADS": "1"} | variables
        if subprocess.run(command, env=os.environ | variables, check=False).returncode:
            failed.append(name)
        print(f"As {name}: {time.monotonic() - began:.0f} s", flush=True)
    if failed:
        print(f"Failed as {', '.join(failed)}.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
