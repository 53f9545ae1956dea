"""``-p name=value``: conversion of text to a method's parameter."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wisecrowd.api import make_method
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.kinds import get_kind
from wisecrowd.core.registry import get_method, names_default

if TYPE_CHECKING:
    import typer

    from wisecrowd.cli.options.reading import Reading
    from wisecrowd.core.aggregator import Aggregator

_WORDS = {"none": None, "null": None, "true": True, "false": False}


def configured_method(
    name: str, given: Sequence[str] | None, seed: int | None, kind: str = "aggregation"
) -> Aggregator:
    """Return the method with the parameters of the command line.

    Parameters
    ----------
    name : str
        Command-line name of the method.
    given : sequence of str, optional
        Parameters as ``name=value``.
    seed : int, optional
        Value of ``random_state``, if the method or a nested method has one.
    kind : {"aggregation", "learning"}

    Examples
    --------
    >>> configured_method("dawid-skene", ["max_iter=20", "prior=none"], seed=None)
    DawidSkene(prior=None, max_iter=20)
    """
    signature = inspect.signature(get_method(name, kind).__init__).parameters
    # A parameter declared as anything may be a word, such as "auto", in place of a number.
    defaults = {key: one.default for key, one in signature.items() if one.annotation != "Any"}
    values = named_values(given, defaults)
    if seed is not None and "random_state" in values:
        raise ParameterError("--seed and -p random_state say the same; give one of them.")
    method = make_method(name, values, kind)
    if seed is not None:
        method.set_params(**dict.fromkeys(seeds_of(method), seed))
    method._validate_parameters()  # before a large file is read
    return method


def named_method(
    context: typer.Context,
    name: str,
    given: Sequence[str] | None,
    reading: Reading,
    seed: int | None,
) -> Aggregator | None:
    """Return the method that the command line names, or the default one of a declared type.

    Returns None if neither is given, because the data then decide. "auto" names no method: it is
    the default of every type.
    """
    source = context.get_parameter_source("method")
    if source is not None and source.name == "COMMANDLINE" and not names_default(name):
        return configured_method(name, given, seed)
    declared = reading.declared_type
    if declared is None:
        return None
    return configured_method(get_kind(declared).default_method, given, seed)


def named_values(
    given: Sequence[str] | None, defaults: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return ``NAME=VALUE`` texts as values by name.

    Examples
    --------
    >>> named_values(["bias=0.5", "scale=log"])
    {'bias': 0.5, 'scale': 'log'}
    """
    values: dict[str, Any] = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise ParameterError(
                f"-p {text!r} is not of the form NAME=VALUE; write -p max_iter=20."
            )
        if key in values:
            raise ParameterError(f"-p {key} is given twice; give it once.")
        values[key] = parse_value(key, value.strip(), (defaults or {}).get(key))
    return values


def seeds_of(method: Aggregator) -> dict[str, Any]:
    """Return the random states by parameter name, including those of nested methods."""
    found = method.get_params()
    return {key: value for key, value in found.items() if key.split("__")[-1] == "random_state"}


def parse_value(name: str, text: str, default: Any) -> Any:
    """Convert text to a value for a parameter with this default.

    none, true, false, numbers and JSON lists are converted; anything else is text. If the default
    is a flag or a number, the value must be one too, or "none", which the method checks.

    Examples
    --------
    >>> parse_value("tol", "1e-3", 1e-6), parse_value("prior", "[[3, 1], [1, 3]]", "weak")
    (0.001, [[3, 1], [1, 3]])
    """
    value = _literal(text)
    if value is None:
        return None
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise ParameterError(f"Parameter {name} is {text!r}; give true or false.")
    elif isinstance(default, int | float):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ParameterError(f"Parameter {name} is {text!r}; give a number.")
        if isinstance(default, float):
            return float(value)
    return value


def _literal(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if text[:1] in ("[", "{", '"'):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ParameterError(f"{text!r} looks like JSON and is not ({error}).") from None
    return text
