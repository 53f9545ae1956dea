"""Pages of the public functions and classes, from their signatures and docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

from docstrings import Docstring, parse, to_markdown
from method_pages import all_methods, definitions, undefined_names
from method_pages import link as method_link
from signatures import defaults, signature, types

from wisecrowd.core.lazy import declared

INDEX = "api/index.md"
# Public module → title of its page. Methods have pages of their own.
PAGES = {
    "wisecrowd": "wisecrowd: read, aggregate, compare, report",
    "wisecrowd.audit": "wisecrowd.audit",
    "wisecrowd.acquire": "wisecrowd.acquire: whom to ask next",
    "wisecrowd.truth": "wisecrowd.truth: what few known answers tell",
    "wisecrowd.metrics": "wisecrowd.metrics",
    "wisecrowd.fairness": "wisecrowd.fairness",
    "wisecrowd.simulate": "wisecrowd.simulate",
    "wisecrowd.priors": "wisecrowd.priors",
    "wisecrowd.engines": "wisecrowd.engines: Spark",
    "wisecrowd.nn": "wisecrowd.nn: parts for your own PyTorch loop",
    "wisecrowd.datasets": "wisecrowd.datasets",
    "wisecrowd.testing": "wisecrowd.testing: checks of your own method",
}
# What all methods share, described once.
SHARED = {
    "wisecrowd.core.aggregator:Aggregator": "Every method that takes labels alone",
    "wisecrowd.learning.training.crowd_classifier:CrowdClassifier": (
        "Every classifier that learns from features"
    ),
}
METHODS = "api/methods.md"
# Parameters that many functions of a module have, and few explain again.
INTRODUCTIONS = {
    "wisecrowd.audit": (
        "`audit_crowd` runs all parts that suit the data. Their functions share parameters: "
        "`labels` or `data`, the annotations; `level`, the significance level of a test; `view`, "
        "what several parts compute in common (leave it out); `pruning`, whether to measure what "
        "the removal of the accused workers would change; `random_state`, the seed."
    ),
    "wisecrowd.fairness": (
        "Functions share parameters: `truth` and `predicted`, the classes of the tasks; `groups`, "
        "the group of each task; `positive`, the class that is given or refused."
    ),
    "wisecrowd.nn": (
        "Functions share parameters: `log_probas`, the log-probabilities of the network (n_tasks, "
        "n_classes); `log_rows`, the log confusion rows of the annotations; `batch`, a "
        "`CrowdBatch`; `table`, confusion matrices (n_workers, n_classes, n_classes)."
    ),
}
SECTIONS = ("Returns", "Yields", "Raises", "Notes", "References")


def pages() -> dict[str, str]:
    """Return all pages of the chapter: file in docs to Markdown."""
    made = {path_of(module): module_page(module) for module in PAGES}
    return {INDEX: index_page(), **made, METHODS: shared_page()}


def navigation() -> list[Any]:
    """Return the chapter's entries of the site's navigation."""
    return [INDEX, *({module: path_of(module)} for module in PAGES), {"All methods": METHODS}]


def path_of(module: str) -> str:
    """Return the file of a module's page."""
    return f"api/{module.rpartition('.')[2]}.md"


@cache
def public_names(module: str) -> tuple[str, ...]:
    """Return the public functions and classes of a module, in alphabetical order."""
    loaded = load_module(module)
    if module == "wisecrowd":
        names = declared(module)
    else:
        names = getattr(loaded, "__all__", None) or getattr(loaded, "LOCATIONS", dir(loaded))
    return tuple(sorted(filter(lambda name: is_public(name, loaded), names), key=str.lower))


def load_module(name: str) -> ModuleType:
    """Return a public module; ``wisecrowd.priors`` is an attribute, not a file."""
    if name == "wisecrowd":
        return importlib.import_module(name)
    found: ModuleType = getattr(importlib.import_module("wisecrowd"), name.rpartition(".")[2])
    return found


def is_public(name: str, module: ModuleType) -> bool:
    """Tell whether a name is a function or a class of ours, and not one that was imported."""
    found = getattr(module, name)
    place = getattr(found, "__module__", None) or ""
    if name.startswith("_") or not (inspect.isclass(found) or inspect.isfunction(found)):
        return False
    states_names = any(name in vars(module) for name in ("__all__", "LOCATIONS", "__dir__"))
    return place.startswith("wisecrowd" if states_names else module.__name__)


def link(target: str) -> str | None:
    """Return the address of a method's page or of a public name, seen from a page of the API."""
    page = method_link(target)
    if page:
        return f"../methods/{page}"
    module, _, name = target.removesuffix("()").rpartition(".")
    if target == name and name.islower():
        return None  # a column or a parameter, which may have the name of a function
    for known in PAGES if not module else [module]:
        if known in PAGES and name in public_names(known):
            return f"{path_of(known).removeprefix('api/')}#{name.lower()}"
    return None


# ---------------------------------------------------------------------------------------- pages


def index_page() -> str:
    """Return the list of all public names."""
    parts = [
        "# API",
        "Every public function and class. `import wisecrowd as wc` makes all of them available; "
        "a module is loaded when it is first used. Methods are in [All methods](methods.md), and "
        "each has [a page of its own](../methods/index.md).",
    ]
    for module, title in PAGES.items():
        page = path_of(module).removeprefix("api/")
        lines = [f"## [{title}]({page})", "", "| name | |", "|---|---|"]
        for name in public_names(module):
            summary = to_markdown(docstring_of(getattr(load_module(module), name)).summary, link)
            lines.append(f"| [`{name}`]({page}#{name.lower()}) | {summary} |".replace("\\|", "|"))
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def module_page(module: str) -> str:
    """Return the page of one module."""
    loaded = load_module(module)
    described = parse(inspect.getdoc(loaded) or "")
    parts = [f"# {module}", to_markdown(described.summary, link)]
    if module in INTRODUCTIONS:
        parts.append(INTRODUCTIONS[module])
    for name in public_names(module):
        parts += entry(name, getattr(loaded, name), module)
    return "\n\n".join(parts) + "\n"


def shared_page() -> str:
    """Return the page of what all methods share, and the signature of each."""
    parts = ["# All methods"]
    for place, title in SHARED.items():
        module, _, name = place.partition(":")
        cls = getattr(importlib.import_module(module), name)
        parts += [f"## {title}", to_markdown(docstring_of(cls).summary, link)]
        parts += members(name, cls, module)
    parts.append("## Signatures")
    for method in all_methods():
        address = f"../{method.path}"
        parts.append(f"[{method.name}]({address})")
        parts.append(f"```python\n{signature(method.cls)}\n```")
    return "\n\n".join(parts) + "\n"


# ---------------------------------------------------------------------------------------- names


def docstring_of(found: Any) -> Docstring:
    """Return the docstring of an object, taken apart."""
    return parse(inspect.getdoc(found) or "")


def entry(name: str, found: Any, module: str) -> Iterator[str]:
    """Return the section of a function or class."""
    yield f"## {name}"
    if found.__name__ != name:
        yield f"Another name of `{found.__name__}`."
        return
    yield f"```python\n{signature(found)}\n```"
    yield from description(found, module)
    if inspect.isclass(found):
        yield from members(name, found, module)


def members(name: str, cls: type[Any], module: str) -> Iterator[str]:
    """Return the sections of a class's public methods."""
    for key, raw in public_members(cls):
        found = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
        yield f"### {name}.{key}"
        if isinstance(found, property):
            yield to_markdown(docstring_of(found.fget).summary, link)
            continue
        yield f"```python\n{signature(found, skip_first=not isinstance(raw, staticmethod))}\n```"
        yield from description(found, module)


def public_members(cls: type[Any]) -> Iterator[tuple[str, Any]]:
    """Return methods and properties with a docstring, of the class and of our bases."""
    for key in sorted(dir(cls)):
        owner = next((base for base in cls.__mro__ if key in vars(base)), None)
        if key.startswith("_") or owner is None or not owner.__module__.startswith("wisecrowd"):
            continue
        raw = vars(owner)[key]
        written = isinstance(raw, property | classmethod | staticmethod) or inspect.isfunction(raw)
        if written and inspect.getdoc(raw):
            yield key, raw


def description(found: Any, module: str) -> Iterator[str]:
    """Return summary, parameters, attributes, other sections and example of an object."""
    docstring = docstring_of(found)
    yield to_markdown(docstring.summary, link)
    if docstring.description:
        yield to_markdown(docstring.description, link)
    for section in ("Parameters", "Attributes"):
        if section in docstring.sections:
            yield f"**{section}**"
            known = (defaults(found), types(found)) if section == "Parameters" else ({}, {})
            yield definitions(docstring.entries(section), link, *known)
    for section in SECTIONS:
        if section in docstring.sections:
            yield f"**{section}**"
            yield results(docstring.sections[section])
    if "Examples" in docstring.sections:
        code = docstring.sections["Examples"].strip()
        yield f"```python\n{with_imports(code, found, module)}\n```"


def results(text: str) -> str:
    """Return what a function gives back, or raises: types with their explanations, or prose."""
    made = []
    for block in re.split(r"\n(?=\S)", text.strip()):
        head, _, body = block.partition("\n")
        if body.startswith(" "):
            explained = to_markdown(textwrap.dedent(body), link).replace("\n", "\n    ")
            made.append(f"\n{to_markdown(head, link)}\n:   {explained}\n")
        else:
            made.append(to_markdown(block, link))
    return "\n".join(made).strip()


def with_imports(code: str, found: Any, module: str) -> str:
    """Return an example with the imports that it takes for granted in its module."""
    lines = []
    for missing in sorted(undefined_names(code)):
        if missing == "np":
            lines.append(">>> import numpy as np")
            continue
        value = getattr(sys.modules[found.__module__], missing)
        if inspect.ismodule(value):
            lines.append(f">>> import {value.__name__} as {missing}")
            continue
        is_shown = module in PAGES and missing in public_names(module)
        place = load_module(module).__name__ if is_shown else value.__module__
        lines.append(f">>> from {place} import {missing}")
    return "\n".join([*lines, code])
