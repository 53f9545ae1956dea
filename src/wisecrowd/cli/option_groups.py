"""Groups of options: a command takes a dataclass, and the shell sees each field as an option."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

Command = Callable[..., None]


def command(function: Command) -> Command:
    """Expand the option groups among a command's parameters into their options.

    A group is a dataclass whose fields are annotated with ``typer.Option``. Their defaults are
    those of the parameter's default, an instance of the group, or else those of the group.

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
    groups: dict[str, Any] = {}
    expanded = []
    for parameter in signature(function).parameters.values():
        annotation = hints[parameter.name]
        if isinstance(annotation, type) and is_dataclass(annotation):
            groups[parameter.name] = annotation
            given = parameter.default is not Parameter.empty
            expanded += _options(annotation, parameter.default if given else annotation())
        else:
            expanded.append(_named(parameter.name, parameter.default, annotation))

    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        function(**given)

    made: Any = run  # typer reads the name, the help, and the options from these
    made.__name__, made.__doc__ = function.__name__, function.__doc__
    made.__signature__ = Signature(expanded)
    made.__annotations__ = {parameter.name: parameter.annotation for parameter in expanded}
    return run


def _options(group: Any, default: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        _named(field.name, getattr(default, field.name), hints[field.name])
        for field in fields(group)
    ]


def _named(name: str, default: Any, annotation: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
