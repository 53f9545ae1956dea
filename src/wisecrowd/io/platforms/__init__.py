"""Exports of annotation platforms, one module each: a new platform is a module and its name.

A module has the row of its platform, ``PLATFORM``, and is found by the platform's name. Its reader
takes a source and a request and yields batches of columns, as those of plain tables do. The
platform is detected by :mod:`wisecrowd.io.sniffing`, which imports none of these modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from wisecrowd.kinds import LABELS, NUMBERS, ORDERED, SETS, TEXTS

CHOSEN = (LABELS, ORDERED, NUMBERS, SETS, TEXTS)  # kinds that most questions can be read as
_SAME = {"cleanlab": "wide"}  # platforms that write what another module reads


@dataclass(frozen=True)
class Platform:
    """How a platform's export is read.

    Attributes
    ----------
    read : function of (source, request)
    task, worker, label : str
        What its columns are called.
    options : tuple of str
        What users may choose.
    kinds : tuple of str
        The kinds of labels that its answers can be read as.
    """

    read: Callable[..., Iterator[Mapping[str, Any]]]
    task: str
    worker: str
    label: str
    options: tuple[str, ...] = ("label",)
    kinds: tuple[str, ...] = CHOSEN

    @property
    def roles(self) -> tuple[str, ...]:
        """The options, with the other name of the label."""
        return (*self.options, "question") if "label" in self.options else self.options


def platform_of(name: str) -> Platform:
    """Return the row of a platform.

    Examples
    --------
    >>> platform_of("label-studio").worker, platform_of("cleanlab").task
    ('completed_by', 'row')
    """
    module = _SAME.get(name, name).replace("-", "_")
    row: Platform = import_module(f"{__name__}.{module}").PLATFORM
    return row
