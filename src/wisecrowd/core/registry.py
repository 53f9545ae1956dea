"""Which methods there are: found by name, loaded late, described by their own docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.validation import suggestion


@dataclass(frozen=True)
class MethodInfo:
    """One method as the command line and the documentation list it.

    Attributes
    ----------
    name : its command-line name, such as "dawid-skene"
    cls : the class's name
    summary, use, reference : from the docstring: first line, when to use it, the paper
    """

    name: str
    cls: str
    summary: str
    use: str
    reference: str


def kebab_case(class_name: str) -> str:
    """Return the command-line name of a class.

    Examples
    --------
    >>> kebab_case("FastDawidSkene"), kebab_case("GLAD")
    ('fast-dawid-skene', 'glad')
    """
    if class_name.isupper():
        return class_name.lower()
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", class_name).lower()


def _locations() -> Mapping[str, str]:
    locations: Mapping[str, str] = importlib.import_module("wisecrowd.aggregation").LOCATIONS
    return locations


def method_names() -> list[str]:
    """Return the command-line names of all inference methods, without loading them."""
    return [kebab_case(name) for name in _locations()]


def get_method(name: str) -> type[Any]:
    """Return the class of a method by its class or command-line name.

    Examples
    --------
    >>> get_method("dawid-skene").__name__
    'DawidSkene'
    """
    if not isinstance(name, str):
        raise ParameterError(f"method is {name!r}; give a name such as 'dawid-skene'.")
    wanted = _plain(name)
    for class_name, module in _locations().items():
        if _plain(class_name) == wanted:
            loaded = importlib.import_module(f"wisecrowd.aggregation.{module}")
            method: type[Any] = getattr(loaded, class_name)
            return method
    known = method_names()
    raise ParameterError(
        f"There is no method {name!r}{suggestion(name, known)}; there are {', '.join(known)}."
    )


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()


def methods() -> list[MethodInfo]:
    """Return all inference methods with what each is for and where it comes from."""
    return [_describe(get_method(name)) for name in _locations()]


def _describe(cls: type[Any]) -> MethodInfo:
    text = inspect.getdoc(cls) or ""
    use = re.search(r"(Use it when .*?\.)(\s|$)", text, re.DOTALL)
    reference = re.search(r"References\n-+\n(.*?)(\n\n|$)", text, re.DOTALL)
    return MethodInfo(
        kebab_case(cls.__name__),
        cls.__name__,
        text.splitlines()[0] if text else "",
        _one_line(use.group(1)) if use else "",
        _one_line(reference.group(1)) if reference else "",
    )


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
