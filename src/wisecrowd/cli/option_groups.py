"""Groups of options: a command takes a dataclass, whose fields become options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

Command = Callable[..., None]


def command(function: Command) -> Command:
    """Expand the option groups among a command's parameters into their options.

    A group is a dataclass whose fields are annotated with ``typer.Option`` or are groups
    themselves. Defaults are those of the group, or of the instance that is the parameter's default.

    Examples
    --------
    >>> from wisecrowd.cli.options import Reading
    >>> @command
    ... def show(path: str, *, reading: Reading) -> None:
    ...     print(path, reading.task, reading.format)
    >>> list(signature(show).parameters)[:4]
    ['path', 'task', 'worker', 'label']
    >>> show(path="a.csv", **{**vars(Reading()), "task": "item"})
    a.csv item auto
    """
    hints = get_type_hints(function, include_extras=True)
    expanded: list[Parameter] = []
    for parameter in signature(function).parameters.values():
        expanded += _options(parameter.name, parameter.default, hints[parameter.name])

    def run(**given: Any) -> None:
        own = signature(function).parameters
        function(**{name: _argument(name, hints[name], given) for name in own})

    made: Any = run  # typer reads the name, the help, and the options from these
    made.__name__, made.__doc__ = function.__name__, function.__doc__
    made.__signature__ = Signature(expanded)
    made.__annotations__ = {parameter.name: parameter.annotation for parameter in expanded}
    return run


def _options(name: str, default: Any, annotation: Any) -> list[Parameter]:
    """Return the options of a parameter: its fields if it is a group, else the parameter itself."""
    if not is_dataclass(annotation):
        return [Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)]
    hints = get_type_hints(annotation, include_extras=True)
    found = []
    for field in fields(annotation):
        value = field.default if default is Parameter.empty else getattr(default, field.name)
        found += _options(
            field.name, Parameter.empty if value is MISSING else value, hints[field.name]
        )
    return found


def _argument(name: str, annotation: Any, given: dict[str, Any]) -> Any:
    """Return the value of a parameter; for a group this is an instance with all its fields."""
    if not is_dataclass(annotation):
        return given[name]
    hints = get_type_hints(annotation, include_extras=True)
    group: Any = annotation
    return group(**{field.name: _argument(field.name, hints[field.name], given)
                    for field in fields(annotation)})  # fmt: skip
