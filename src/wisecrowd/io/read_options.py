"""The options of reading annotations: one list for Python and the command line. Imports are light.

``wisecrowd.read`` and the functions that describe or pack files take them by keyword.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from inspect import Parameter, signature
from typing import Any, Self, TypeVar

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.option_spelling import for_reader

MOST_GRADES = 1000  # classes of a scale
ORDERED = "ordered"

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How annotations are read; ``wisecrowd.read`` explains each option.

    Attributes
    ----------
    others : mapping of role to column name
        Columns besides task, worker and label.
    """

    format: str = "auto"
    task: str | None = None
    worker: str | None = None
    label: str | None = None
    classes: Any = None
    tasks: Any = None
    workers: Any = None
    abstain: Any = ()
    duplicates: str = "auto"
    type: str | None = None
    scale: Any = None
    encoding: str = "utf-8"
    header: bool = True
    columns: Any = None
    wide: bool = False
    worker_columns: Any = None
    kinds: str | Iterable[str] | None = None
    exclude_workers: str | Iterable[str] = ()
    default_type: str | None = None
    keep_order: bool = False
    accept: str | Iterable[str] = ()
    others: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, **given: Any) -> Self:
        """Return options by name; other names are roles of columns, None if not given.

        Examples
        --------
        >>> options = ReadOptions.of(scale="1..3", weight="w", left=None)
        >>> options.type, options.classes, options.others
        ('ordered', ['1', '2', '3'], {'weight': 'w'})
        """
        own = NAMES & set(given)
        others = {k: v for k, v in given.items() if k not in own and v is not None}
        return cls(**{name: given[name] for name in own}, others=others)._with_scale()

    def _with_scale(self) -> Self:
        """Return the options with the type and the classes that a scale declares."""
        if self.scale is None:
            return self
        spelled = for_reader("scale", "--scale")
        if self.type not in (None, ORDERED):
            raise ParameterError(
                f"{spelled} declares ordered classes, and {for_reader('type', '--type')} is "
                f"{self.type}; leave one out."
            )
        if self.classes is not None:
            raise ParameterError(
                f"{spelled} and {for_reader('classes', '--classes')} both name the classes; leave "
                "one out."
            )
        return replace(self, type=ORDERED, classes=scale_classes(self.scale))

    @property
    def roles(self) -> dict[str, str | None]:
        """The column of each role; None means: by its usual names."""
        return {"task": self.task, "worker": self.worker, "label": self.label, **self.others}

    @property
    def of_files(self) -> dict[str, Any]:
        """The given options that files have, and packs were made with."""
        hidden = {"type", "encoding", "header", "default_type", "keep_order", "accept", "others"}
        hidden |= set() if self.scale is None else {"classes"}
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in hidden}
        return {name: value for name, value in (own | {**self.others}).items() if _is_given(value)}


NAMES = frozenset(one.name for one in fields(ReadOptions)) - {"others"}


def _is_given(value: Any) -> bool:
    empty = isinstance(value, str | list | tuple) and value in ("auto", [], ())
    return not (value is None or value is False or empty)


def takes_read_options(function: Function) -> Function:
    """Show the options of reading in the signature of a function, instead of ``**options``."""
    shown = signature(function)
    own = [one for one in shown.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    rest = [one for one in shown.parameters.values() if one.kind is Parameter.VAR_KEYWORD]
    added = [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type)
        for one in fields(ReadOptions)
        if one.default is not MISSING and one.name not in shown.parameters
    ]
    made: Any = function
    made.__signature__ = shown.replace(parameters=[*own, *added, *rest])
    return function


def names_of(text: str | None) -> list[str] | None:
    """Split names at commas; a name that contains a comma is in double quotes.

    Examples
    --------
    >>> names_of('ann, bob,"Smith, J."')
    ['ann', 'bob', 'Smith, J.']
    """
    if text is None:
        return None
    try:
        names = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:  # a line end, or a name longer than csv allows
        from wisecrowd.core.messages.descriptions import describe_value

        raise ParameterError(
            f"{describe_value(text)} is no list of names; separate them by commas, and put a name "
            "with a comma or a line end in double quotes."
        ) from None
    return [name.strip() for name in names]


def scale_classes(scale: Any) -> list[Any]:
    """Return the classes that a scale declares, the lowest first.

    Examples
    --------
    >>> scale_classes("1..5"), scale_classes("low,medium,high")
    (['1', '2', '3', '4', '5'], ['low', 'medium', 'high'])
    """
    grades = _grades(scale) if isinstance(scale, str) else list(scale)
    if len(grades) < 2 or len(grades) > MOST_GRADES:
        raise ParameterError(
            f"{for_reader('scale', '--scale')} is {scale!r}; give the lowest and the highest "
            "grade, such as 1..5, or all grades in order, such as low,medium,high."
        )
    return grades


def _grades(text: str) -> list[str]:
    low, dots, high = text.partition("..")
    if not dots:
        return names_of(text) or []
    ends = [int(end) for end in (low, high) if re.fullmatch(r"\s*-?[0-9]{1,9}\s*", end)]
    first, last = ends if len(ends) == 2 else (0, 0)
    return [str(grade) for grade in range(first, min(last, first + MOST_GRADES) + 1)]
