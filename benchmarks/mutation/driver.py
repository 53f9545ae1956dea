"""Mutation testing on a budget: how many small mistakes in the code the tests notice.

python -m benchmarks.mutation                            what ``make mutation`` prints
python -m benchmarks.mutation --each 30 --only margin    more mistakes, in some modules
python -m benchmarks.mutation --seed 1                   other mistakes

Every mistake is put into a copy of the project, and the tests of its module run there until one
fails: its own tests, those of its users, and the common checks of a method that uses it. Survivors
are listed, with a reason where explained_mutants.py has one. A mistake with which the tests do not
end counts neither way: it may hang, or be slow to compile.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter, defaultdict
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

from benchmarks.mutation.explained_mutants import reason
from benchmarks.mutation.mutants import Mutant, importers, method_of, mutants_of, tests_of
from benchmarks.rows import Row

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "wisecrowd"
GROUPS = {
    "kernels": sorted(
        path
        for folder in (SOURCE / "kernels", SOURCE / "kinds" / "classes" / "kernels")
        for path in folder.glob("[!_]*.py")
    ),
    "families": sorted((SOURCE / "kinds" / "classes" / "families").rglob("[!_]*.py")),
    "validation": [
        SOURCE / f"{name}.py"
        for name in (
            "core/validation", "core/parameter_checks", "core/columns", "core/ids/encoding",
            "core/duplicates", "core/gold", "core/messages/option_spelling",
            "core/ids/lookalike_ids", "kinds/classes/prior", "kinds/classes/wide_matrix",
            "kinds/classes/findings/data_checks",
        )
    ],
}  # fmt: skip
SCORE = 0.8
SECONDS = 120  # of processor time: others may use the machine
# Loaded once, before the forks, so that a mistake costs its tests alone.
LIBRARIES = (
    "numpy", "scipy.sparse.linalg", "scipy.optimize", "scipy.special", "scipy.stats", "numba",
    "numba.core.typed_passes", "pyarrow.csv", "pyarrow.parquet", "narwhals", "pytest",
    "_pytest.doctest", "pandas", "polars", "sklearn.base", "sklearn.model_selection",
)  # fmt: skip

BYTES = 8 << 30
KILLED, SURVIVED, TOO_LONG = "killed", "survived", "too long"
copy = Path()  # the tree of this process


def set_up() -> None:
    """Give this process a copy of the project, and load the libraries."""
    global copy
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it stops it
    copy = Path(tempfile.mkdtemp(prefix="mutation-"))
    for folder in ("src", "tests", "examples", "docs"):
        # Compiled kernels come along: only those with a mistake are compiled again.
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("*.pyc"))
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md", "Makefile", "mkdocs.yml"):
        shutil.copy(ROOT / name, copy)
    for name in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)


def outcome(job: tuple[Mutant | None, list[str]]) -> tuple[str, str]:
    """Run the tests with a mistake, or without any; say what came of it and what they printed."""
    mutant, tests = job
    if mutant is None:
        return _forked(tests, seconds=3600)
    path = copy / mutant.module
    right = path.read_text()
    stamp = path.stat()
    try:
        path.write_text(mutant.text)
        _forget_compiled(path)
        return _forked(tests)
    finally:
        path.write_text(right)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        _forget_compiled(path)


def judged(job: tuple[Mutant, list[str]]) -> tuple[Mutant, str]:
    return job[0], outcome(job)[0]


def _forget_compiled(path: Path) -> None:
    """Remove what was compiled from a module, and from those that compile it into themselves."""
    if path.parent.name == "kernels" and path.stem != "posteriors":  # which is never compiled
        whole = copy / "src" / "wisecrowd"
        users = whole if path.parent == whole / "kernels" else path.parent
        for cached in users.rglob("__pycache__/*.nb?"):
            cached.unlink()


def _forked(tests: list[str], seconds: int = SECONDS) -> tuple[str, str]:
    log = copy / "pytest.log"
    child = os.fork()
    if child == 0:
        _run_tests(tests, log, seconds)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = {0: SURVIVED, -signal.SIGXCPU: TOO_LONG}.get(code, KILLED)
    return found, log.read_text(errors="replace")[-2000:]


def _run_tests(tests: list[str], log: Path, seconds: int) -> None:
    import pytest

    code: int = 3
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.chdir(copy)
        os.environ["PYTHONPATH"] = str(copy / "src")
        sys.path[:0] = [str(copy / "src"), str(copy)]
        for name in [name for name in sys.modules if name.split(".")[0] in ("wisecrowd", "tests")]:
            del sys.modules[name]  # the right one, which came with the benchmark
        sys.dont_write_bytecode = True
        options = ["-x", "-q", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist"]
        *files, method = tests
        code = int(pytest.main([*options, *files]))
        if code == 0:
            common = ["tests/test_common_checks.py", "-k", f"[{method}-check"]
            code = int(pytest.main([*options, *common]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run(
    each: int = 12, seed: int = 0, only: list[str] | None = None, n_processes: int = 2
) -> list[Row]:
    chosen = {
        path: group
        for group, paths in GROUPS.items()
        for path in paths
        if not only or path.stem in only or group in only
    }
    users = importers(ROOT)
    tests = {path: [*tests_of(path, ROOT, users), method_of(path, ROOT, users)] for path in chosen}
    jobs = [(m, tests[p]) for p in chosen for m in mutants_of(p, ROOT, each, seed)]
    random.Random(seed).shuffle(jobs)  # whoever stops early has a fair sample
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    survivors: list[Mutant] = []
    with get_context("spawn").Pool(n_processes, initializer=set_up) as pool:
        files = sorted({file for own in tests.values() for file in own[:-1]})
        found, said = pool.apply(outcome, [(None, [*files, "majority-vote"])])
        if found != SURVIVED:
            raise SystemExit(f"The tests fail without a mistake:\n{said}")
        try:
            for mutant, found in pool.imap_unordered(judged, jobs):
                counts[mutant.module][found] += 1
                print(f"{found}: {mutant}", file=sys.stderr, flush=True)
                survivors += [mutant] * (found == SURVIVED)
        except KeyboardInterrupt:
            print("Stopped: these are the mistakes so far.", file=sys.stderr)
            pool.terminate()
    return _rows(chosen, counts, survivors, seed)


def _rows(
    chosen: dict[Path, str], counts: dict[str, Counter[str]], survivors: list[Mutant], seed: int
) -> list[Row]:
    rows = []
    for group in dict.fromkeys(chosen.values()):
        whole: Counter[str] = Counter()
        for path, own in chosen.items():
            if own == group:
                found = counts[path.relative_to(ROOT).as_posix()]
                whole.update(found)
                print(f"    {path.stem}: {found[KILLED]} of {found[KILLED] + found[SURVIVED]}")
        n = whole[KILLED] + whole[SURVIVED]
        same = sum(
            reason(m.module, m.before, m.after) is not None
            for m in survivors
            if chosen[ROOT / m.module] == group
        )
        score = whole[KILLED] / max(n, 1)
        text = (
            f"{score:.1%}; {whole[KILLED] / max(n - same, 1):.1%} without {same} explained "
            f"survivors; {whole[TOO_LONG]} undecided after {SECONDS} s"
        )
        what = f"mutation score of {group}, {n} mistakes, seed {seed}"
        rows.append(Row(what, "≥ 80%", text, score >= SCORE))
    for mutant in survivors:
        why = reason(mutant.module, mutant.before, mutant.after)
        print(f"    survived: {mutant}" + (f" ({why})" if why else ""))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=12, help="mistakes per module, at most")
    parser.add_argument("--seed", type=int, default=0, help="which mistakes")
    parser.add_argument("--only", nargs="*", help="modules or groups")
    parser.add_argument("--processes", type=int, default=2, help="how many at once")
    given = parser.parse_args()
    rows = run(given.each, given.seed, given.only, given.processes)
    print("\n".join(row.line() for row in rows))
