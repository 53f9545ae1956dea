"""State that outlives a call: docs/architecture.md lists it, and there is no other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import wisecrowd

SOURCE = Path(wisecrowd.__file__).parent
ARCHITECTURE = Path(__file__).parent.parent / "docs" / "architecture.md"
ALLOWED = {"lazy", "settings", "threads", "trainer"}
MAKERS = {"ContextVar", "local", "Lock", "RLock", "cache", "lru_cache", "WeakKeyDictionary"}
MUTATORS = {
    "add", "append", "clear", "extend", "insert", "pop", "remove", "setdefault", "update",
}  # fmt: skip


def name_of(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        return name_of(node.func)
    return getattr(node, "attr", None) or getattr(node, "id", "")


def states(tree: ast.Module) -> Iterator[str]:
    """Yield what a module keeps between calls."""
    own = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in tree.body:
        value = getattr(node, "value", None)
        if isinstance(value, ast.Call) and name_of(value) in MAKERS:
            yield f"made by {name_of(value)}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield f"global {', '.join(node.names)}"
        for decorator in getattr(node, "decorator_list", []):
            if name_of(decorator) in MAKERS:
                yield f"@{name_of(decorator)}"
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            inner = {node.id for node in ast.walk(function)
                     if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}  # fmt: skip
            inner |= {argument.arg for argument in ast.walk(function.args)
                      if isinstance(argument, ast.arg)}  # fmt: skip
            yield from (f"changes {name}" for name in changed(function) if name in own - inner)


def changed(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the names whose content a function changes."""
    for node in ast.walk(function):
        stored = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del)
        if stored and isinstance(node.value, ast.Name):
            yield node.value.id
        if isinstance(node, ast.Attribute) and node.attr in MUTATORS:
            yield name_of(node.value) if isinstance(node.value, ast.Name) else ""


@pytest.mark.parametrize(
    "code",
    [
        "x = ContextVar('x')",
        "x: ContextVar[int] = ContextVar('x')",
        "lock = threading.RLock()",
        "x = 0\ndef f():\n    global x\n    x = 1",
        "x = {}\ndef f():\n    x[1] = 2",
        "x = []\ndef f():\n    x.append(2)",
        "@cache\ndef f(): ...",
        "@functools.lru_cache(maxsize=1)\ndef f(): ...",
    ],
)
def test_state_is_found(code):
    assert list(states(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "x = {1: 2}\ndef f():\n    return x[1]",
        "x = []\ndef f(x):\n    x.append(1)",
        "x = frozenset()",
    ],
)
def test_constants_are_none(code):
    assert not list(states(ast.parse(code)))


def test_no_module_keeps_state_that_is_not_listed():
    found = {
        path.stem: kept
        for path in SOURCE.rglob("*.py")
        if (kept := list(states(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert found.keys() <= ALLOWED, found
    listed = ARCHITECTURE.read_text(encoding="utf-8")
    assert all(f"{name}.py`" in listed for name in found)
