"""The kinds of labels: the only table that knows them all.

A kind is a container, an answer class and a row here. Everything else asks the row: reading, fits,
tables, model files, the command line and the common checks. A kind is declared, by the user or by
the method, and never guessed from values.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.answers import Answers, ClassAnswers
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.settings import current_settings, with_settings
from wisecrowd.core.task_prior import as_start, class_prior

LABELS = "labels"


def no_prior(task_prior: Any, gold: Any, data: Annotations) -> None:
    """Refuse prior knowledge of tasks: the prior of a kind that has none."""
    if task_prior is not None or gold is not None:
        raise ParameterError(
            f"Methods for {type(data).__name__} take neither gold nor a task prior; leave them out."
        )


def no_start(init: Any, data: Annotations) -> None:
    """Refuse a start: that of a kind whose methods choose their own."""
    if init is not None:
        raise ParameterError(f"Methods for {type(data).__name__} take no init; leave it out.")


@dataclass(frozen=True, kw_only=True)
class Symmetry:
    """A change of the data that changes the answers in a known way.

    Attributes
    ----------
    name : str
    change : function of data
        The changed data; tasks and workers stay.
    expected : function of learned attributes
        What the answers to the changed data must be, by attribute, given those to the data.
    """

    name: str
    change: Callable[[Any], Any]
    expected: Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of label.

    Attributes
    ----------
    name : str
        What ``type`` and ``--type`` call it.
    container : subclass of Annotations
        Declares the payload and the columns that hold it.
    answers : subclass of Answers
        Declares the results: attributes, tables, scores, saved axes.
    methods : str or mapping of class name to module
        The methods that take this kind: a package with ``LOCATIONS``, or where they are.
    default_method : str
        Command-line name of the method that is used where none is named.
    prior : function of (task_prior, gold, data)
        Turns prior knowledge about tasks into the kind's own form.
    start : function of (init, data)
        Turns the user's start into the form that methods take.
    checked : bool
        Whether the common checks of a fit, which report findings, apply.
    example : "module:function" or function of (make, seed)
        A small crowd for the common checks of the methods that ``make`` makes.
    symmetries : tuple of Symmetry
        What the common checks hold every method of this kind to.
    """

    name: str
    container: type[Annotations]
    answers: type[Answers]
    methods: str | Mapping[str, str]
    default_method: str
    example: str | Callable[[Any, int], Annotations]
    prior: Callable[[Any, Any, Any], Any] = no_prior
    start: Callable[[Any, Any], Any] = no_start
    checked: bool = False
    symmetries: tuple[Symmetry, ...] = ()

    def gate(self, data: Any) -> Any:
        """Return data of any accepted form as this kind's container, or refuse them."""
        return self.container.coerce(data)

    def method_modules(self) -> dict[str, str]:
        """Return the module of every method that takes this kind, by class name."""
        if not isinstance(self.methods, str):
            return dict(self.methods)
        locations = importlib.import_module(self.methods).LOCATIONS
        return {name: f"{self.methods}.{module}" for name, module in locations.items()}

    def example_crowd(self, make: Any, seed: int = 0) -> Any:
        """Return a small crowd that a method can be fitted to."""
        if callable(self.example):
            return self.example(make, seed)
        module, _, function = self.example.partition(":")
        return getattr(importlib.import_module(module), function)(make, seed)


def _reverse_classes(data: CrowdLabels) -> CrowdLabels:
    return replace(data, label=(data.n_classes - 1 - data.label).astype(np.int32))


def _reversed_results(learned: Mapping[str, Any]) -> dict[str, Any]:
    expected = {"probas_": learned["probas_"][:, ::-1]}
    if "confusion_" in learned:
        expected["confusion_"] = learned["confusion_"][:, ::-1, ::-1]
    return expected


KINDS: dict[str, Kind] = {
    LABELS: Kind(
        name=LABELS,
        container=CrowdLabels,
        answers=ClassAnswers,
        methods="wisecrowd.aggregation",
        default_method="dawid-skene",
        prior=class_prior,
        start=as_start,
        checked=True,
        example="wisecrowd.testing.crowds:small_labels",
        symmetries=(
            Symmetry(
                name="reversing the classes", change=_reverse_classes, expected=_reversed_results
            ),
        ),
    ),
}


def all_kinds() -> dict[str, Kind]:
    """Return the kinds of wisecrowd, and those that :func:`with_kind` adds, by name."""
    return {**KINDS, **{kind.name: kind for kind in current_settings().kinds}}


@contextmanager
def with_kind(kind: Kind) -> Iterator[None]:
    """Add a kind that is defined outside of wisecrowd, inside a ``with`` block.

    Its name is a ``type`` there, and its methods are found by their names.
    """
    if kind.name in all_kinds():
        raise ParameterError(f"There is a kind {kind.name!r} already; choose another name.")
    with with_settings(kinds=(*current_settings().kinds, kind)):
        yield


def get_kind(name: str) -> Kind:
    """Return a kind by name.

    Examples
    --------
    >>> get_kind("labels").container.__name__
    'CrowdLabels'
    """
    if name in KINDS:
        return KINDS[name]
    found = all_kinds()
    if name not in found:
        known = "classes" if set(found) == {LABELS} else ", ".join(found)
        raise ParameterError(
            f"type is {name!r}; only {known} are supported: give {option('type', LABELS)} or leave "
            "it out."
        )
    return found[name]
