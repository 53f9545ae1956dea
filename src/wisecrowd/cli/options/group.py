"""Groups of options: a command takes a dataclass, whose fields become options."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer

Command = Callable[..., None]


class Group:
    """What a command asks each of its groups of options.

    A group that writes files also has a method of :func:`wisecrowd.cli.run.exports.write`.
    """

    def check(self, kind: str | None = None) -> None:
        """Refuse options that do not go together, or not with a kind of labels."""

    def sources(self) -> list[str]:
        """Return the files to read."""
        return []

    def places(self) -> list[str]:
        """Return the files to write, except manifests."""
        return []


def option(usage: str, help: str | None = None, **more: Any) -> Any:
    """Return an option as its line of the help shows it: its names, what follows, and what it does.

    Examples
    --------
    >>> made = option("-o --output FILE", "Output file.")
    >>> made.metavar, made.help
    ('FILE', 'Output file.')
    """
    words = usage.split()
    names = [word for word in words if word.startswith("-")]
    return typer.Option(*names, metavar=" ".join(words[len(names) :]) or None, help=help, **more)


def present_paths(*paths: str | None) -> list[str]:
    """Return the paths that are given."""
    return [path for path in paths if path is not None]


def command(function: Command) -> Command:
    """Expand the option groups among a command's parameters into their options.

    A group is a dataclass whose fields are annotated with ``typer.Option`` or are groups
    themselves; its ``panel``, if it has one, is the heading of its options in the help. Defaults
    are those of the group, or of the instance that is the parameter's default.

    Examples
    --------
    >>> from wisecrowd.cli.options.reading import Reading
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


def _options(name: str, default: Any, annotation: Any, panel: str | None = None) -> list[Parameter]:
    """Return the options of a parameter: its fields if it is a group, else the parameter itself."""
    if not is_dataclass(annotation):
        shown = annotation if panel is None else _in_panel(annotation, panel)
        return [Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=shown)]
    hints = get_type_hints(annotation, include_extras=True)
    found = []
    for field in fields(annotation):
        value = field.default if default is Parameter.empty else getattr(default, field.name)
        found += _options(
            field.name,
            Parameter.empty if value is MISSING else value,
            hints[field.name],
            getattr(annotation, "panel", panel),
        )
    return found


def _in_panel(annotation: Any, panel: str) -> Any:
    """Return an annotated option that the help shows under a heading of its own."""
    info = copy(annotation.__metadata__[0])
    info.rich_help_panel = panel
    return Annotated[annotation.__origin__, info]


def _argument(name: str, annotation: Any, given: dict[str, Any]) -> Any:
    """Return the value of a parameter; for a group this is an instance with all its fields."""
    if not is_dataclass(annotation):
        return given[name]
    hints = get_type_hints(annotation, include_extras=True)
    group: Any = annotation
    return group(**{field.name: _argument(field.name, hints[field.name], given)
                    for field in fields(annotation)})  # fmt: skip
