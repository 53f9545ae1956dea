"""Registry of methods: looked up by name, loaded lazily, described by their docstrings."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.kinds import LABELS, get_kind, kind_names, method_modules, words_of
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.messages.option_spelling import for_reader


@dataclass(frozen=True)
class MethodInfo:
    """Description of a method for the command line and the documentation.

    Attributes
    ----------
    name : its command-line name, such as "dawid-skene"
    cls : the class's name
    summary, use, reference : from the docstring: first line, when to use it, the paper
    type : the type of labels that it takes
    """

    name: str
    cls: str
    summary: str
    use: str
    reference: str
    type: str = LABELS


# The literature writes these as one word in mixed case.
ONE_WORD = {"MultiSPA", "COINNet", "CoNAL", "MaxMIG", "DeepMF", "DeepBP", "BayesDGC"}


def kebab_case(class_name: str) -> str:
    """Return the command-line name of a class: kebab case, or one word as in the literature.

    Examples
    --------
    >>> kebab_case("FastDawidSkene"), kebab_case("HMMCrowd"), kebab_case("MultiSPA")
    ('fast-dawid-skene', 'hmm-crowd', 'multispa')
    """
    if class_name.isupper() or class_name in ONE_WORD:
        return class_name.lower()
    return words_of(class_name, "-")


AUTO = "auto"  # names the default method of every kind; for classes it is a method of its own
PACKAGES = ("aggregation", "learning")  # inference from labels alone, and learning with features


def _modules(kind: str, type: str | None = None) -> dict[str, str]:
    """Return the module of every method by class name; ``type`` selects one type of labels."""
    if kind == "aggregation":
        return method_modules(None if type is None else get_kind(type).name)
    locations: Mapping[str, str] = importlib.import_module(f"wisecrowd.{kind}").LOCATIONS
    return {
        name: f"wisecrowd.{kind}.{module}"
        for name, module in locations.items()
        if type in (None, _learned_type(module))
    }


def _learned_type(module: str) -> str:
    """Return the type of labels of a learner: the folder of its module, or classes."""
    folder, dot, _ = module.partition(".")
    return folder if dot and folder in kind_names() else LABELS


def method_names(kind: str = "aggregation", type: str | None = LABELS) -> list[str]:
    """Return the command-line names of the methods for a type of labels, without loading them.

    Parameters
    ----------
    kind : {"aggregation", "learning"}
    type : str or None
        Type of the labels; None means all types.
    """
    return [kebab_case(name) for name in _modules(kind, type)]


def get_method(name: str, kind: str = "aggregation") -> type[Any]:
    """Return the class of a method by its class or command-line name.

    Parameters
    ----------
    name : str
    kind : {"aggregation", "learning"}
        Inference from labels alone, or learning from features and labels.

    Examples
    --------
    >>> get_method("dawid-skene").__name__
    'DawidSkene'
    """
    if not isinstance(name, str):
        raise ParameterError(f"method is {name!r}; give a name such as 'dawid-skene'.")
    wanted = _plain(name)
    for class_name, module in _modules(kind).items():
        if _plain(class_name) == wanted:
            package = f"wisecrowd.{kind}"  # its message names what is not installed
            place = package if module.startswith(f"{package}.") else module
            method: type[Any] = getattr(importlib.import_module(place), class_name)
            return method
    raise ParameterError(_no_such_method(name, kind))


def names_default(method: Any) -> bool:
    """Return whether a method is "auto" by name: the default of the data's kind.

    Examples
    --------
    >>> names_default("auto"), names_default("mace"), names_default(None)
    (True, False, False)
    """
    return isinstance(method, str) and _plain(method) == AUTO


def _no_such_method(name: str, kind: str) -> str:
    known = method_names(kind, None)
    for other in PACKAGES:
        if other != kind and _plain(name) in map(_plain, method_names(other, None)):
            what, command = (
                ("learns from features", "train")
                if other == "learning"
                else ("takes labels alone", "aggregate")
            )
            return f"{name} {what}: use {for_reader(f'wisecrowd.{other}', f'wisecrowd {command}')}."
    return f"There is no method {name!r}{suggestion(name, known)}; there are {', '.join(known)}."


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()


def methods(kind: str = "aggregation", *, type: str | None = None) -> list[MethodInfo]:
    """Return all methods of a kind, with their purpose and reference.

    Parameters
    ----------
    kind : {"aggregation", "learning"}
    type : {"labels", "ordered", "numbers", "pairs", "sets", ...}, optional
        Only methods that take this type of labels.

    Examples
    --------
    >>> methods()[0].name
    'auto'
    """
    if kind not in PACKAGES:
        raise ParameterError(f"kind is {kind!r}; choose one of {', '.join(PACKAGES)}.")
    wanted = kind_names() if type is None else [get_kind(type).name]
    return [
        _describe(class_name, module, one)
        for one in wanted
        for class_name, module in _modules(kind, one).items()
    ]


def _describe(class_name: str, module: str, type: str) -> MethodInfo:
    text = _docstring(module, class_name)
    use = re.search(r"(Use it when .*?\.)(\s|$)", text, re.DOTALL)
    reference = re.search(r"References\n-+\n(.*?)(\n\n|$)", text, re.DOTALL)
    return MethodInfo(
        kebab_case(class_name),
        class_name,
        text.splitlines()[0] if text else "",
        _one_line(use.group(1)) if use else "",
        _one_line(reference.group(1)) if reference else "",
        type,
    )


def _docstring(module: str, class_name: str) -> str:
    """Return a class's docstring from its source, because its imports may not be installed."""
    source = importlib.util.find_spec(module)
    if source is None or source.origin is None:
        return ""
    tree = ast.parse(Path(source.origin).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            return ast.get_docstring(node) or ""
    return ""


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
