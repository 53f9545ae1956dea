"""Table of all kinds of labels.

A kind consists of a container, an answer class and an entry here. Reading, fits, tables, model
files, the command line and the common checks use that entry. The user or the method declares the
kind; it is never guessed from values.
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
IN_BLOCK = "`with with_kind(KIND):` of wisecrowd.core.kinds"  # in messages


def no_prior(task_prior: Any, gold: Any, data: Annotations) -> None:
    """Refuse a task prior or gold, for kinds without them."""
    if task_prior is not None or gold is not None:
        raise ParameterError(
            f"Methods for {type(data).__name__} take neither gold nor a task prior; leave them out."
        )


def no_start(init: Any, data: Annotations) -> None:
    """Refuse a start, for kinds whose methods choose their own."""
    if init is not None:
        raise ParameterError(f"Methods for {type(data).__name__} take no init; leave it out.")


@dataclass(frozen=True, kw_only=True)
class Symmetry:
    """A change of the data that changes the answers in a known way.

    Attributes
    ----------
    name : str
    change : function of data
        Returns the changed data, with the same tasks and workers.
    expected : function of learned attributes
        Returns the expected answers to the changed data by attribute, given the original answers.
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
        Its name for ``type`` and ``--type``.
    container : subclass of Annotations
        Declares the payload and the columns that hold it.
    answers : subclass of Answers
        Declares the results: attributes, tables, scores, saved axes.
    methods : str or mapping of class name to module
        Methods for this kind: a package with ``LOCATIONS``, or the module of each class.
    default_method : str
        Command-line name of the default method.
    prior : function of (task_prior, gold, data)
        Turns prior knowledge about tasks into the kind's own form.
    start : function of (init, data)
        Turns the user's start into the form that methods take.
    checked : bool
        Whether the common checks of a fit apply.
    example : "module:function" or function of (make, seed)
        Returns a small crowd for the common checks of the methods that ``make`` creates.
    symmetries : tuple of Symmetry
        Symmetries that the common checks verify for every method of this kind.
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
        """Return data of any accepted form as this kind's container, or raise an error."""
        return self.container.coerce(data)

    def method_modules(self) -> dict[str, str]:
        """Return the module of every method that takes this kind, by class name."""
        if not isinstance(self.methods, str):
            return dict(self.methods)
        locations = importlib.import_module(self.methods).LOCATIONS
        return {name: f"{self.methods}.{module}" for name, module in locations.items()}

    def example_crowd(self, make: Any, seed: int = 0) -> Any:
        """Return a small crowd for fitting a method."""
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
        default_method="auto",
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
    """Return the built-in kinds and those added by :func:`with_kind`, by name."""
    return {**KINDS, **{kind.name: kind for kind in current_settings().kinds}}


@contextmanager
def with_kind(kind: Kind) -> Iterator[None]:
    """Register a kind that is defined outside of wisecrowd, inside a ``with`` block.

    Inside the block its name is a valid ``type`` and its methods are found by name.
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
