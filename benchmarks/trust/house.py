"""How well a reader finds the way: one table, the same counts before and after a change.

- files, code lines: of `src/wisecrowd`, without docstrings, comments and blank lines;
- packages of a kind: first-level folders that hold a file or folder named after the kind;
- places that name a kind: in files that are not named after one, `isinstance` with a container
  of a kind, and comparisons with its name;
- references by string: texts "module:Name", arguments of `import_module`, and in `__init__` files
  texts that are modules beside them;
- questions for packs: `isinstance(…, Packed…)` outside of the files of packs;
- files behind DawidSkene: modules of wisecrowd that are loaded after its module is imported alone;
- bases with code: its base classes in wisecrowd that define a function;
- private helpers: functions and methods whose names begin with one underscore;
- walk: distinct functions and files of a second run, and changes of the first-level
  folder between calls;
- CPU: the smallest user and system time of seven runs on 300 labels, in seconds.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import wisecrowd as wc
from benchmarks.rows import Row
from benchmarks.speed.start_up import cpu_of
from benchmarks.walk import PACKAGE, Walk, code_lines, table, walk
from wisecrowd.cli.main import run as run_command

# Words of the kinds in names of files, and the containers that `isinstance` asks for.
WORDS = {
    "ordered": ("ordered", "ordinal"), "numbers": ("number", "numbers"),
    "pairs": ("pair", "pairs", "preference", "preferences"), "rankings": ("ranking", "rankings"),
    "same": ("same", "sameness", "clusters"), "sets": ("set", "sets"),
    "sequences": ("sequence", "sequences", "span", "spans"),
    "boxes": ("box", "boxes", "region", "regions"), "masks": ("mask", "masks"),
    "texts": ("text", "texts"),
}  # fmt: skip
CONTAINERS = {
    f"Crowd{name}" for name in ("Labels", "Numbers", "Pairs", "Rankings", "Sets", "Sequences",
                                "Regions", "Same", "Texts", "Masks")
}  # fmt: skip
NAMES = {"labels", *WORDS}
REFERENCE = re.compile(r"[a-z_]\w*(\.\w+)*:[A-Za-z_]\w*")


class Source(NamedTuple):
    """A file of the package: its parts below `src/wisecrowd`, without suffix, and its content."""

    parts: tuple[str, ...]
    text: str
    tree: ast.Module

    @property
    def kind(self) -> str | None:
        """The kind that the file or one of its folders is named after."""
        words = {word for part in self.parts for word in part.split("_")}
        return next((kind for kind, own in WORDS.items() if words & set(own)), None)


def sources() -> list[Source]:
    """Return all files of the package."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        found.append(Source(path.relative_to(PACKAGE).with_suffix("").parts, text, ast.parse(text)))
    return found


def packages_per_kind(files: list[Source]) -> dict[str, int]:
    """Return the number of first-level folders with a file of each kind."""
    return {
        kind: len({one.parts[0] for one in files if one.kind == kind and len(one.parts) > 1})
        for kind in WORDS
    }


def names_of_kinds(tree: ast.Module) -> int:
    """Count the places of a file that ask which kind they have.

    >>> names_of_kinds(ast.parse("isinstance(x, CrowdSets)\\nx == BOXES\\nk in ('sets', 'a')"))
    3
    """
    return sum(
        bool(CONTAINERS & set(classes_asked(node)))
        or (isinstance(node, ast.Compare) and any(map(is_kind, operands(node))))
        for node in ast.walk(tree)
    )


def classes_asked(node: ast.AST) -> Iterator[str]:
    """Give the names of the classes in a call of `isinstance`."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
        for one in ast.walk(node.args[1]):
            if isinstance(one, ast.Name | ast.Attribute):
                yield one.id if isinstance(one, ast.Name) else one.attr


def operands(node: ast.Compare) -> Iterator[ast.expr]:
    """Give what a comparison compares, and the elements of lists in it."""
    for one in (node.left, *node.comparators):
        yield from one.elts if isinstance(one, ast.Tuple | ast.List | ast.Set) else (one,)


def is_kind(node: ast.expr) -> bool:
    """Return whether an expression is a kind's name: a text, or a constant such as BOXES."""
    text = node.value if isinstance(node, ast.Constant) else getattr(node, "id", "")
    if isinstance(node, ast.Constant):
        return isinstance(text, str) and text in NAMES
    return text.isupper() and text.lower() in NAMES


def references(file: Source) -> int:
    """Count the references of a file to modules by string."""
    beside = {path.stem for path in (PACKAGE.joinpath(*file.parts[:-1])).glob("*") if path.stem}
    found = 0
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            sibling = file.parts[-1] == "__init__" and node.value.split(".")[0] in beside
            found += sibling or REFERENCE.fullmatch(node.value) is not None
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            found += 1
    return found


def is_of_packs(file: Source) -> bool:
    """Return whether a file belongs to packs: to the engines, or named after them."""
    return file.parts[0] in ("engines", "packs") or any(
        part.startswith("pack") or part == "packed" for part in file.parts
    )


def questions_for_packs(tree: ast.Module) -> int:
    """Count the calls of `isinstance` with a packed form of data."""
    return sum(
        any(name.startswith("Packed") for name in classes_asked(node)) for node in ast.walk(tree)
    )


class Layout(NamedTuple):
    """What generic code knows: kinds by name, modules by string, packs by `isinstance`."""

    asking: list[int]  # places that name a kind, by file
    strings: int
    packed: int

    @classmethod
    def from_files(cls, files: list[Source]) -> Layout:
        generic = [one for one in files if one.kind is None and one.parts[0] != "kinds"]
        return cls(
            [names_of_kinds(one.tree) for one in generic],
            sum(map(references, files)),
            sum(questions_for_packs(one.tree) for one in files if not is_of_packs(one)),
        )


def helper_share(files: list[Source]) -> float:
    """Return the share of functions whose names begin with one underscore."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    names = [n.name for one in files for n in ast.walk(one.tree) if isinstance(n, kinds)]
    return sum(name.startswith("_") and not name.startswith("__") for name in names) / len(names)


def modules_behind(module: str) -> int:
    """Return how many modules of wisecrowd a process has loaded that imports only this one."""
    script = (
        f"import sys, {module}\n"
        "print(sum(name.partition('.')[0] == 'wisecrowd' for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    return int(done.stdout)


def bases_with_code(cls: type) -> list[str]:
    """Return the base classes in wisecrowd that define a function of their own."""
    return [
        base.__name__
        for base in cls.__mro__[1:]
        if base.__module__.startswith("wisecrowd")
        and any(
            getattr(value, "__module__", "") == base.__module__ and callable(value)
            for value in vars(base).values()
        )
    ]


def walked(folder: Path) -> dict[str, Walk]:
    """Return the walk of a fit, and of a command on boxes."""
    run_command(["simulate", str(folder / "boxes"), "--type", "boxes", "--tasks", "60", "-q"])
    answers = str(folder / "boxes" / "answers.csv")
    command = ["aggregate", answers, "--type", "boxes", "-q", "-o", str(folder / "out.csv")]
    data = table()
    return {
        "DawidSkene().fit(frame)": walk(lambda: wc.aggregation.DawidSkene().fit(data)),
        "aggregate boxes.csv --type boxes": walk(lambda: run_command(command)),
    }


def costs(folder: Path) -> dict[str, float]:
    """Return the CPU seconds of three commands on 300 labels."""
    data = table()
    path = folder / "crowd.csv"
    rows = zip(*(column.tolist() for column in data.values()), strict=True)
    lines = [",".join(data), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    wisecrowd = [sys.executable, "-m", "wisecrowd"]
    target = str(folder / "labels.csv")
    return {
        "--help": cpu_of([*wisecrowd, "--help"]),
        "aggregate": cpu_of([*wisecrowd, "aggregate", str(path), "-q", "-o", target]),
        "audit": cpu_of([*wisecrowd, "audit", str(path), "-q"]),
    }


def static_rows() -> list[Row]:
    """Return the counts that need no run of a method."""
    files = sources()
    lines = sum(len(code_lines(one.text)) for one in files)
    packages = packages_per_kind(files)
    most = max(packages.values())
    asking, strings, packed = Layout.from_files(files)
    behind = modules_behind(wc.aggregation.DawidSkene.__module__)
    bases = bases_with_code(wc.aggregation.DawidSkene)
    helpers = helper_share(files)
    per_kind = f"{min(packages.values())} to {most}"
    places = f"{sum(asking)} in {sum(map(bool, asking))} files"
    return [
        Row("files in src", "≤ 640", str(len(files)), len(files) <= 640),
        Row("code lines in src", "≤ 78,500", f"{lines:,}", lines <= 78_500),
        Row("packages of one kind", "≤ 3", per_kind, most <= 3),
        Row("places that name a kind", "≤ 25", places, sum(asking) <= 25),
        Row("references by string", "≤ 80", str(strings), strings <= 80),
        Row("questions for packs outside of packs", "0", str(packed), packed == 0),
        Row("files behind DawidSkene", "≤ 60", str(behind), behind <= 60),
        Row("base classes with code", "≤ 2", f"{len(bases)}: {', '.join(bases)}", len(bases) <= 2),
        Row("private helpers", "≤ 33%", f"{helpers:.1%}", helpers <= 0.33),
    ]


def run() -> list[Row]:
    rows = static_rows()
    limits = {
        "DawidSkene().fit(frame)": (170, 35, 60),
        "aggregate boxes.csv --type boxes": (260, 50, 120),
    }
    bars = {"--help": 0.17, "aggregate": 0.7, "audit": 1.0}
    with tempfile.TemporaryDirectory() as name:
        for call, seen in walked(Path(name)).items():
            found = (len(seen.functions), len(seen.files), seen.package_switches)
            met = all(one <= bar for one, bar in zip(found, limits[call], strict=True))
            bar = ", ".join(map(str, limits[call]))
            what = f"walk of `{call}`: functions, files, package changes"
            rows.append(Row(what, f"≤ {bar}", ", ".join(map(str, found)), met))
        for command, seconds in costs(Path(name)).items():
            what, bar = f"CPU of `wisecrowd {command}`", bars[command]
            rows.append(Row(what, f"≤ {bar} s", f"{seconds:.2f} s", seconds <= bar))
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
