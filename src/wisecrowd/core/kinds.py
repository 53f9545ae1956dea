"""Kinds of labels: what the rest of wisecrowd asks a kind, and how it finds one.

A kind is a package of :mod:`wisecrowd.kinds`, which is loaded when it is first asked for. Reading,
fits, tables, model files, the command line and the common checks ask its row. The user or the
method declares the kind; it is never guessed from values.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.answers import Answers
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.settings import current_settings, with_settings

LABELS = "labels"  # the kind of a table whose kind is not declared
IN_BLOCK = "`with with_kind(KIND):` of wisecrowd.core.kinds"  # in messages


def no_prior(task_prior: Any, gold: Any, data: Annotations) -> None:
    """Refuse a task prior or gold, for kinds without them."""
    if task_prior is not None or gold is not None:
        raise ParameterError(
            f"Methods for {kind_of(data).name} take neither gold nor a task prior; leave them out."
        )


def no_start(init: Any, data: Annotations) -> None:
    """Refuse a start, for kinds whose methods choose their own."""
    if init is not None:
        raise ParameterError(f"Methods for {kind_of(data).name} take no init; leave it out.")


@dataclass(frozen=True, kw_only=True)
class Symmetry:
    """A change of the data that changes the answers in a known way.

    The common checks verify the symmetries of a kind for every method.

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


class Words(NamedTuple):
    """How messages speak of the labels and results of a kind.

    Attributes
    ----------
    labels, per_task : str
        What all labels are called, and those of one task.
    sizes : str
        What else a question has, with fields of :class:`wisecrowd.io.inspection.Question`.
    output : str
        The usual name of a file of results.
    """

    labels: str = "labels"
    per_task: str = "labels"
    sizes: str = ""
    output: str = "labels.csv"


PLAIN = Words()


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
    default_method : str
        Command-line name of the default method.
    package : str
        The package with the other parts of the kind: ``methods.METHODS``; ``checks`` with a small
        crowd, its symmetries and ``CHECKS``; ``scorer.SCORER``, ``audit.PLAN``, ``report.PLAN`` and
        ``packed.PACKED``. What is absent is not offered for the kind.
    also_called : tuple of str
        Other words for the kind, for suggestions.
    pack_method : str
        Default method for packs, where that of the kind needs all labels in memory.
    refit_method : str
        Method that an audit fits again and again, where the default one is many fits.
    prior : function of (task_prior, gold, data)
        Turns prior knowledge about tasks into the kind's own form.
    start : function of (init, data)
        Turns the user's start into the form that methods take.
    findings : function of (data, result, known, *, labels_only), optional
        The common checks of a fit.
    updating : function, optional
        Returns the module of updates: ``update_method``, ``updatable``, ``state_of``, ``restore``.
    declared : bool
        Whether a method of this kind declares what the labels are; otherwise classes that look
        like numbers or texts are refused.
    default_learner : str, optional
        Command-line name of the default method that learns from features.
    usual : bool
        Whether labels are of this kind if nothing declares another one.
    also_fits : tuple of str
        Other kinds whose data the methods of this kind take.
    words : Words
    exports : tuple of str
        What results can be written as besides tables, such as "preferences" and "coco".
    gold_in_rows : bool
        Whether a known answer is one cell of a table, as ``--gold`` reads it.
    recognises : function of a set of names
        Whether a file with these columns holds results of this kind.
    truth_column : str, optional
        The usual column of known answers; by default "label" and others of its names.
    empty_truth, true_numbers : bool
        Whether an empty cell is a known answer, and whether known answers are numbers, which may
        have decimal commas.
    methods : mapping of class name to module, optional
        Methods of a kind without a package.
    example : function of (make, seed), optional
        Returns a small crowd for the common checks, for a kind without a package.
    symmetries : tuple of Symmetry
        Those of a kind without a package.
    """

    name: str
    container: type[Annotations]
    answers: type[Answers]
    default_method: str
    package: str = ""
    also_called: tuple[str, ...] = ()
    pack_method: str = ""
    refit_method: str = ""
    prior: Callable[[Any, Any, Any], Any] = no_prior
    start: Callable[[Any, Any], Any] = no_start
    default_learner: str | None = None
    usual: bool = False
    also_fits: tuple[str, ...] = ()
    words: Words = PLAIN
    exports: tuple[str, ...] = ()
    gold_in_rows: bool = True
    recognises: Callable[[Set[str]], bool] = lambda columns: False
    truth_column: str | None = None
    empty_truth: bool = False
    true_numbers: bool = False
    findings: Callable[..., list[Finding]] | None = None
    updating: Callable[[], Any] | None = None
    declared: bool = False
    methods: Mapping[str, str] | None = None
    example: Callable[[Any, int], Annotations] | None = None
    symmetries: tuple[Symmetry, ...] = ()

    def default_on_packs(self) -> str:
        """Return the default method of packs, which are fitted shard by shard."""
        return self.pack_method or self.default_method

    def default_of_refits(self) -> str:
        """Return the method that an audit fits to parts of the labels."""
        return self.refit_method or self.default_method

    def gate(self, data: Any) -> Any:
        """Return data of any accepted form as this kind's container, or raise an error."""
        return self.container.coerce(data, type=self.name if self.declared else None)

    def has_part(self, name: str) -> bool:
        """Return whether the package of the kind has such a module."""
        try:
            return bool(self.package and importlib.util.find_spec(f"{self.package}.{name}"))
        except ModuleNotFoundError:  # nor such a folder
            return False

    def part(self, name: str) -> ModuleType | None:
        """Return a module of the kind's package, such as "report"; None if there is none."""
        return _part(self.package, name) if self.has_part(name) else None

    def method_modules(self) -> dict[str, str]:
        """Return the module of every method that takes this kind, by class name."""
        return dict(_located(self.package) if self.methods is None else self.methods)

    def example_crowd(self, make: Any, seed: int = 0) -> Any:
        """Return a small crowd for fitting a method."""
        example = self.example or _part(self.package, "checks").example
        return example(make, seed)

    def all_symmetries(self) -> tuple[Symmetry, ...]:
        """Return the symmetries that hold for every method of this kind."""
        if not self.package:
            return self.symmetries
        found: tuple[Symmetry, ...] = _part(self.package, "checks").SYMMETRIES
        return found


def _part(package: str, name: str) -> ModuleType:
    """Return a module of a package."""
    return importlib.import_module(f"{package}.{name}")


def _located(package: str) -> dict[str, str]:
    """Return the module of every method in the package of a kind, by class name."""
    methods = _part(package, "methods")
    return {name: f"{methods.__name__}.{words_of(name, '_')}" for name in methods.METHODS}


def words_of(class_name: str, between: str) -> str:
    """Return the words of a class name in lower case.

    Examples
    --------
    >>> words_of("FastDawidSkene", "_"), words_of("HMMCrowd", "-")
    ('fast_dawid_skene', 'hmm-crowd')
    """
    border = r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
    return re.sub(border, between, class_name).lower()


def kinds_package() -> ModuleType:
    """Return :mod:`wisecrowd.kinds`, which lies above and is therefore loaded late."""
    return _part("wisecrowd", "kinds")


def built_in() -> dict[str, str]:
    """Return the package of every built-in kind by name, without loading them."""
    kinds = kinds_package()
    return {name: f"{kinds.__name__}.{kinds.FOLDERS.get(name, name)}" for name in kinds.NAMES}


class _Kinds(Mapping[str, Kind]):
    """The rows of the built-in kinds, each loaded when it is asked for."""

    def __getitem__(self, name: str) -> Kind:
        row: Kind = _part(built_in()[name], "kind").KIND
        return row

    def __iter__(self) -> Iterator[str]:
        return iter(built_in())

    def __len__(self) -> int:
        return len(built_in())


KINDS = _Kinds()


def all_kinds() -> dict[str, Kind]:
    """Return the built-in kinds and those added by :func:`with_kind`, by name."""
    return {**KINDS, **{kind.name: kind for kind in current_settings().kinds}}


def kind_names() -> list[str]:
    """Return the names of all kinds, without loading them."""
    return [*built_in(), *(kind.name for kind in current_settings().kinds)]


def method_modules(type: str | None = None) -> dict[str, str]:
    """Return the module of every method by class name, of one kind or of all.

    Only the rows of kinds from elsewhere are loaded.
    """
    packages = built_in()
    found: dict[str, str] = {}
    for name in kind_names() if type is None else [type]:
        own = packages.get(name)
        found |= _located(own) if own else get_kind(name).method_modules()
    return found


@contextmanager
def with_kind(kind: Kind) -> Iterator[None]:
    """Register a kind that is defined outside of wisecrowd, inside a ``with`` block.

    Inside the block its name is a valid ``type`` and its methods are found by name.
    """
    if kind.name in kind_names():
        raise ParameterError(f"There is a kind {kind.name!r} already; choose another name.")
    with with_settings(kinds=(*current_settings().kinds, kind)):
        yield


def kind_of(data: Annotations) -> Kind:
    """Return the kind of annotations: that of their container and of the order of classes.

    Examples
    --------
    >>> from wisecrowd import CrowdNumbers
    >>> kind_of(CrowdNumbers.from_arrays(["t"], ["w"], [1.5])).name
    'numbers'
    """
    own: tuple[Kind, ...] = current_settings().kinds
    for kind in own:
        if type(data) is kind.container:
            return kind
    if type(data).kind:
        return KINDS[data.kind_name()]
    lacking = next((k for k in KINDS.values() if type(data) is k.container), None)
    if lacking is not None:
        raise TypeError(f"{type(data).__name__} must say kind: ClassVar = {lacking.name!r}.")
    raise ParameterError(
        f"{type(data).__name__} belong to a kind that is not known here; use it inside {IN_BLOCK}."
    )


def get_kind(name: str) -> Kind:
    """Return a kind by name.

    Examples
    --------
    >>> get_kind("labels").container.__name__
    'CrowdLabels'
    """
    if name in built_in():
        return KINDS[name]
    found = all_kinds()
    if name not in found:
        raise ParameterError(
            f"type is {name!r}{_meant(name)}; only {', '.join(found)} are supported: give "
            f"{option('type', LABELS)}, another of these, or leave it out."
        )
    return found[name]


def _meant(name: str) -> str:
    """Return a question that names the kind with this other name, or an empty text."""
    plain = name.strip().lower()
    for kind in all_kinds().values():
        if plain == kind.name or plain in kind.also_called:
            return f" (did you mean {option('type', kind.name)}?)"
    return suggestion(plain, kind_names())
