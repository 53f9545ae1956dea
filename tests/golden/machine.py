"""The machine that wrote the stored results, and how closely another one must agree.

A machine of the same kind gives the same bits, so stored numbers are compared at 1e-10. Another
processor, another version of a library, or linear algebra on several threads rounds differently:
there the numbers of a fit that converged agree to 1e-7, with the exceptions in ``LOOSER``.
"""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import llvmlite.binding
from tests.processors import dispatched

SAME_MACHINE = 1e-10
ELSEWHERE = 1e-7
# Methods whose results depend more on rounding. Weights that differ by 1e-13, or the instructions
# of another processor, move probabilities of symmetric-nmf by up to 3.5e-7 on "many_classes": the
# factorisation is nearly flat around its solution. The next largest change of any method, 1.1e-8,
# is also one of symmetric-nmf.
LOOSER = {"symmetric-nmf": 1e-6}
LIBRARIES = ("numpy", "scipy", "numba", "torch")
# Variables by which libraries choose other code than the processor's own (tests/processors.py),
# and the number of threads of linear algebra, which `make test` sets to one.
OVERRIDES = (
    "OPENBLAS_CORETYPE", "NUMBA_CPU_NAME", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA",
    "OMP_NUM_THREADS",
)  # fmt: skip


def fingerprint() -> dict[str, str]:
    """Describe what decides how numbers are rounded here: the processor and the libraries."""
    found = {
        "processor": _processor(),
        "instructions": " ".join([llvmlite.binding.get_host_cpu_name(), *dispatched()]),
        "overrides": " ".join(f"{x}={os.environ[x]}" for x in OVERRIDES if os.environ.get(x)),
    }
    return found | {library: _version(library) for library in LIBRARIES}


def tolerance(stored: dict[str, str], method: str | None = None) -> float:
    """Return the largest difference allowed from numbers that the stored machine wrote."""
    return SAME_MACHINE if stored == fingerprint() else tolerance_elsewhere(method)


def tolerance_elsewhere(method: str | None = None) -> float:
    """Return the largest difference allowed between machines of different kinds."""
    return LOOSER.get(method or "", ELSEWHERE)


def _processor() -> str:
    """Return architecture, vendor, family and model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    fields = {name.strip(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    kept = [fields.get(name, "") for name in ("vendor_id", "cpu family", "model", "model name")]
    return " ".join([platform.machine(), *kept])


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"
