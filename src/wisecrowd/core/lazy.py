"""Facades: packages whose public names are loaded when they are first used.

A facade declares its names once: as imports under ``if TYPE_CHECKING:``, which editors and type
checkers read. Here they are read from the source of the package, when a name is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


@cache
def declared(package: str) -> dict[str, str]:
    """Return the module that a facade imports each of its names from.

    Examples
    --------
    >>> declared("wisecrowd")["read"], declared("wisecrowd")["audit"]
    ('wisecrowd.io.tables', 'wisecrowd')
    """
    # Here, because the import of a facade alone needs no names.
    import ast
    import pkgutil

    tree = ast.parse(pkgutil.get_data(package, "__init__.py") or b"")
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [one for block in blocks for one in block.body if isinstance(one, ast.ImportFrom)]
    found = {alias.name: str(one.module) for one in imports for alias in one.names}
    return dict(sorted(found.items()))


def facade(package: str, *others: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that declares its names.

    ``others`` are public names that the package defines itself.

    Examples
    --------
    >>> load, names = facade("wisecrowd.truth")
    >>> load("workers").__name__
    'workers'
    """

    def load(name: str) -> Any:
        if name.startswith("_") or name not in declared(package):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(declared(package)[name])
        if module.__name__ == package or not hasattr(module, name):
            return import_module(f"{module.__name__}.{name}")
        return getattr(module, name)

    def names() -> list[str]:
        return [*others, *declared(package)]

    return load, names
