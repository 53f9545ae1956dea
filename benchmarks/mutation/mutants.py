"""Small mistakes to put into a module, one at a time, and the tests that should notice them.

cosmic-ray says where a mistake can be made and makes it. A place is drawn before the mistake, so
that an operator with many replacements counts as much as one with a single one. Left out are
mistakes that no test could see (annotations, decorators, what only the type checker reads) and
those that no hand would make (a shift for a sum, ``is`` for ``<``), which every test sees.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import parso.python.tree  # noqa: F401  cosmic-ray imports it half-way into itself otherwise
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from wisecrowd.core.registry import get_method, method_names
from wisecrowd.kernels import MODULES

ARITHMETIC, BITS = "Add|Sub|Mul|Div|FloorDiv|Mod|Pow", "BitOr|BitAnd|BitXor|LShift|RShift"
LIKELY = re.compile(
    rf"core/(ReplaceBinaryOperator_(({ARITHMETIC})_(Add|Sub|Mul|Div)|({BITS})_({BITS}))"
    r"|ReplaceComparisonOperator_((Eq|NotEq|Lt|LtE|Gt|GtE)_(Eq|NotEq|Lt|LtE|Gt|GtE)"
    r"|Is_IsNot|IsNot_Is)"
    r"|ReplaceUnaryOperator_Delete_.*|AddNot|ReplaceTrueWithFalse|ReplaceFalseWithTrue"
    r"|ReplaceAndWithOr|ReplaceOrWithAnd|ReplaceBreakWithContinue|ReplaceContinueWithBreak"
    r"|NumberReplacer|ZeroIterationForLoop)"
)
DISTANCE = 2  # how far up the imports the tests of a module are looked for
MOST_FILES = 8
# Kernels are not imported but chosen while a fit runs, by these modules.
CHOSEN_BY = {
    "belief_propagation": "kinds.classes.methods.belief_propagation",
    "confusion": "kinds.classes.families.confusion",
    "gibbs": "kinds.classes.methods.gibbs_dawid_skene",
    "glad": "kinds.classes.methods.glad",
    "pairs": "kinds.classes.families.moments.pair_moments",
    "sparse_posterior": "kinds.classes.methods.majority_vote",
}

Place = tuple[int, int]


@dataclass(frozen=True)
class Mutant:
    """One mistake: where it is, and the whole text of the module that has it."""

    module: str
    line: int
    operator: str
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        name = self.operator.removeprefix("core/")
        return f"{self.module}:{self.line} {name}: `{self.before}` became `{self.after}`"


def unseen(source: str) -> set[Place]:
    """Return the places within annotations, decorators and what only the type checker reads.

    ``zip(..., strict=True)`` is a promise to the reader, which right code never needs, and
    ``einsum(..., optimize=True)`` changes the order of the sums alone.
    """
    nodes: list[ast.AST] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation:
            nodes.append(node.annotation)
        if isinstance(node, ast.keyword) and node.arg in {"strict", "optimize"}:
            nodes.append(node.value)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            nodes += node.decorator_list
            nodes += [node.returns] if isinstance(node, ast.FunctionDef) and node.returns else []
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            nodes.append(node)
    lines = source.splitlines()
    places: set[Place] = set()
    for node in nodes:
        for line in range(node.lineno, node.end_lineno + 1):
            first = node.col_offset if line == node.lineno else 0
            last = node.end_col_offset if line == node.end_lineno else len(lines[line - 1])
            places |= {(line, column) for column in range(first, last)}
    return places


def possible(source: str) -> dict[Place, list[tuple[str, int]]]:
    """Return, for every place, the operators that fit and which of their occurrences it is."""
    tree, hidden = get_ast(source), unseen(source)
    found: dict[Place, list[tuple[str, int]]] = defaultdict(list)
    for name in filter(LIKELY.fullmatch, operator_names()):
        operator = get_operator(name)()
        positions = (
            start for node in ast_nodes(tree) for start, _ in operator.mutation_positions(node)
        )
        for occurrence, start in enumerate(positions):
            if tuple(start) not in hidden:
                found[tuple(start)].append((name, occurrence))
    return found


def mutants_of(path: Path, root: Path, n: int, seed: int) -> list[Mutant]:
    """Draw at most n mistakes in a module, each at a place of its own."""
    source = path.read_text()
    module = path.relative_to(root).as_posix()
    rng = np.random.default_rng([seed, *module.encode()])
    found = possible(source)
    places = sorted(found)
    drawn = []
    for index in rng.permutation(len(places)):
        place = places[index]
        name, occurrence = found[place][rng.integers(len(found[place]))]
        text = mutate_code(source, get_operator(name)(), occurrence)
        changed = [
            (number, before.strip(), after.strip())
            for number, (before, after) in enumerate(
                zip(source.splitlines(), text.splitlines(), strict=False), start=1
            )
            if before != after
        ]
        if not changed or not _compiles(text):
            continue
        drawn.append(Mutant(module, changed[0][0], name, *changed[0][1:], text))
        if len(drawn) == n:
            break
    return sorted(drawn, key=lambda mutant: mutant.line)


def _compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def importers(root: Path) -> dict[str, set[str]]:
    """Return, for every module of the package, the modules that import it."""
    paths = sorted((root / "src" / "wisecrowd").rglob("*.py"))
    names = {_dotted(path, root): path for path in paths}
    users: dict[str, set[str]] = defaultdict(set)
    for name, path in names.items():
        for node in ast.walk(ast.parse(path.read_text())):
            used = []
            if isinstance(node, ast.ImportFrom) and node.module:
                used = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                used = [alias.name for alias in node.names]
            for other in set(used) & names.keys():
                users[other].add(name)
    for family, user in CHOSEN_BY.items():
        for end in ("", "_fast"):
            users[f"wisecrowd.{MODULES[family]}{end}"].add(f"wisecrowd.{user}")
    return users


def method_of(path: Path, root: Path, users: dict[str, set[str]]) -> str:
    """Return the name of a method that uses a module, for the common checks."""
    names = {get_method(name).__module__: name for name in method_names()}
    ring = seen = {_dotted(path, root)}
    for _ in range(4):
        ring = {user for module in ring for user in users[module]} - seen
        seen = seen | ring
        found = [name for module, name in names.items() if module in ring]
        if found:
            return found[0]
    return "majority-vote"


def _dotted(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root / "src").with_suffix("").parts)


def tests_of(path: Path, root: Path, users: dict[str, set[str]]) -> list[str]:
    """Return the files with a module's tests: its own, its examples, and those of its users.

    Kernels are tested together, with compiled and plain ones side by side.
    """
    name = _dotted(path, root)
    near, seen = [name], {name}
    ring = [name]
    for _ in range(DISTANCE):
        found = {user for module in ring for user in users[module]} - seen
        ring = sorted(found, key=lambda user: (user.split(".")[1] != name.split(".")[1], user))
        seen |= set(ring)
        near += ring
    files = [path]
    if ".kernels." in name:
        files += sorted((root / "tests" / Path(*name.split(".")[1:-1])).glob("test_*.py"))
    for module in near:
        *folders, stem = module.split(".")[1:]
        files.append(root / "tests" / Path(*folders) / f"test_{stem}.py")
    present = dict.fromkeys(file.relative_to(root).as_posix() for file in files if file.exists())
    return list(present)[:MOST_FILES]
