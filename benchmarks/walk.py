"""How far a reader walks through wisecrowd: ``python -m benchmarks.walk``.

Three calls on 300 labels are profiled: ``DawidSkene().fit(table)``, ``wisecrowd.aggregate(table)``
and the command ``wisecrowd aggregate FILE``, each after a first run that does the lazy imports.
Counted are calls of named Python functions of the package; comprehensions, lambdas and bodies of
modules and classes are left out.

- functions: distinct functions that were called;
- files: distinct files that define them;
- file switches: consecutive calls, in the order of calling, whose files differ. They grow with the
  number of iterations.

A report of a simulated crowd counts its fits, with and without the checks of a fit: all of them
and those that are not part of another fit.

The source gives the code lines (no docstrings, comments, blanks), the state that modules keep
(context variables, caches, locks, globals that are rebound or changed), and the lines of the
functions that a Dawid-Skene fit calls.
"""

from __future__ import annotations

import ast
import inspect
import io
import sys
import tempfile
import tokenize
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import wisecrowd as wc
from wisecrowd.cli.main import run
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import WisecrowdWarning

PACKAGE = Path(wc.__file__).parent
N_LABELS = 300
LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip
# Methods that change a list, dict or set; decorators that keep what a function returned; objects
# whose purpose is to change.
CHANGES = {
    "add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove",
    "setdefault", "update",
}  # fmt: skip
CACHES = {"cache", "lru_cache"}
KEEPERS = {"ContextVar", "Lock", "RLock", "WeakSet", "WeakKeyDictionary", "WeakValueDictionary"}

# ------------------------------------------------------------------------------------------- walks


class Walk(NamedTuple):
    """The functions that a call ran through, in the order of first calls, and the switches.

    Switches are between files; package switches are between first-level folders.
    """

    functions: list[CodeType]
    switches: int
    package_switches: int

    @property
    def files(self) -> set[str]:
        return {code.co_filename for code in self.functions}


def walk(call: Callable[[], Any]) -> Walk:
    """Profile the second run of a call, and return its walk through the package."""
    calls: list[CodeType] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and is_function(frame.f_code):
            calls.append(frame.f_code)

    call()
    profile(call, note)
    places = [Path(code.co_filename) for code in calls]
    switches = sum(a != b for a, b in pairwise(places))
    packages = [path.relative_to(PACKAGE).parts[0] for path in places]
    between = sum(a != b for a, b in pairwise(packages))
    return Walk(list(dict.fromkeys(calls)), switches, between)


def profile(call: Callable[[], Any], note: Callable[[FrameType, str, Any], None]) -> None:
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)


def is_function(code: CodeType) -> bool:
    is_named = not code.co_name.startswith("<") and code.co_flags & inspect.CO_NEWLOCALS
    return bool(is_named) and code.co_filename.startswith(str(PACKAGE))


def table() -> dict[str, NDArray[Any]]:
    """Return 300 labels of 60 tasks by 20 workers, most of them right."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(60), N_LABELS // 60)
    worker = np.concatenate([rng.permutation(20)[: N_LABELS // 60] for _ in range(60)])
    truth = rng.integers(3, size=60)[task]
    label = np.where(rng.random(N_LABELS) < 0.75, truth, rng.integers(3, size=N_LABELS))
    return {"task": task, "worker": worker, "label": label}


def walks() -> dict[str, Walk]:
    """Return the walk of every call that is profiled."""
    data = table()
    with tempfile.TemporaryDirectory() as folder:
        source, target = (str(Path(folder) / name) for name in ("crowd.csv", "labels.csv"))
        rows = zip(*(column.tolist() for column in data.values()), strict=True)
        lines = [",".join(data), *(",".join(map(str, row)) for row in rows)]
        Path(source).write_text("\n".join(lines) + "\n")
        return {
            "DawidSkene().fit(table)": walk(lambda: wc.aggregation.DawidSkene().fit(data)),
            "wisecrowd.aggregate(table)": walk(lambda: wc.aggregate(data)),
            "wisecrowd aggregate FILE": walk(
                lambda: run(["aggregate", source, "-q", "-o", target])
            ),
        }


def report_fits() -> tuple[int, int]:
    """Return how often a report fits an aggregator: all fits, and the outermost ones."""
    fit = Aggregator._fit_and_publish.__code__
    crowd = wc.simulate.crowd(200, "12*one-coin:8,2 + 3*spammers", "per-task:5", random_state=0)
    count, outermost, depth = 0, 0, 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count, outermost, depth
        if frame.f_code is not fit or event not in ("call", "return"):
            return
        if event == "call":
            count, outermost = count + 1, outermost + (depth == 0)
        depth += 1 if event == "call" else -1

    profile(lambda: wc.report(crowd.labels), note)
    return count, outermost


# ------------------------------------------------------------------------------------------ source


def sources() -> Iterator[tuple[Path, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, path.read_text()


def code_lines(text: str) -> set[int]:
    r"""Return the numbers of the lines that hold code: no docstrings, comments or blanks.

    >>> sorted(code_lines("'A docstring.'\n\nx = (1,  # one\n     2)\n# the end\n"))
    [3, 4]
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            doc = node.body[0]
            lines.difference_update(range(doc.lineno, (doc.end_lineno or doc.lineno) + 1))
    return lines


def module_state(text: str) -> Iterator[tuple[int, str]]:
    r"""Give line and description of everything in a module that changes while it is in use.

    >>> list(module_state("A = {}\nB = {}\ndef f(x):\n    A[x] = B.get(x)\n"))
    [(1, 'A: changed by a function')]
    """
    tree = ast.parse(text)
    changed = set(changed_names(tree))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and CACHES & set(map(last_name, node.decorator_list)):
            yield node.lineno, f"{node.name}: a cache"
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        maker = last_name(node.value) if isinstance(node.value, ast.Call) else ""
        for name in (target.id for target in targets if isinstance(target, ast.Name)):
            if maker in KEEPERS:
                yield node.lineno, f"{name}: {maker}"
            elif name in changed:
                yield node.lineno, f"{name}: changed by a function"


def changed_names(tree: ast.Module) -> Iterator[str]:
    """Give the names that a function rebinds with ``global``, or whose content it changes."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        nodes = list(ast.walk(function))
        local = {node.arg for node in nodes if isinstance(node, ast.arg)}
        local |= {x.id for x in nodes if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
        for node in nodes:
            owner: ast.expr | None = None
            if isinstance(node, ast.Global):
                yield from node.names
            elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                owner = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value if node.func.attr in CHANGES else None
            if isinstance(owner, ast.Name) and owner.id not in local:
                yield owner.id


def last_name(node: ast.AST) -> str:
    """Return the last name of what is called, as ``cache`` of ``functools.cache()``."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def length(code: CodeType) -> int:
    """Return the lines of a function as it stands in its file, with docstring and comments."""
    return len(inspect.getsource(code).splitlines())


def place(code: CodeType) -> str:
    return Path(code.co_filename).relative_to(PACKAGE).as_posix()


# ------------------------------------------------------------------------------------------- print


def main() -> None:
    warnings.simplefilter("ignore", WisecrowdWarning)
    found = walks()
    print("| on 300 labels | functions | files | file switches |\n|---|---|---|---|")
    for name, seen in found.items():
        print(f"| `{name}` | {len(seen.functions)} | {len(seen.files)} | {seen.switches} |")
    fits, outermost = report_fits()
    print(f"\nFits of one report: {fits}, of which {outermost} are not part of another fit")
    print(f"Code lines in src: {sum(len(code_lines(text)) for _, text in sources())}")
    state = [(path, *kept) for path, text in sources() for kept in module_state(text)]
    print(f"State of modules: {len(state)}")
    for path, line, description in state:
        print(f"  {path.relative_to(PACKAGE)}:{line}  {description}")
    functions = found["DawidSkene().fit(table)"].functions
    print(f"Functions called by DawidSkene().fit(table): {sum(map(length, functions))} lines")
    for code in sorted(functions, key=length, reverse=True)[:15]:
        print(f"  {length(code):4d}  {place(code)}:{code.co_firstlineno} {code.co_qualname}")
    per_file: Counter[str] = Counter()
    for code in functions:
        per_file[place(code)] += length(code)
    print("by file:")
    for name, lines in per_file.most_common():
        print(f"  {lines:4d}  {name}")


if __name__ == "__main__":
    main()
