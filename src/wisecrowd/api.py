"""High-level functions: aggregate annotations, load methods, show versions."""

from __future__ import annotations

import copy
import os
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from wisecrowd._version import __version__
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.arrow import as_frame
from wisecrowd.core.columns import OPTIONAL_ROLES
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.kinds import get_kind, kind_names, kind_of
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.registry import get_method, kebab_case, names_default
from wisecrowd.io.read_options import NAMES
from wisecrowd.kinds import LABELS, kind_of_columns

# Reading options that errors name as a remedy; they are not parameters of methods.
READING_OPTIONS = NAMES - {"task", "worker", "label", "type"} | {*OPTIONAL_ROLES}


def aggregate(
    data: Any,
    method: str | Aggregator | None = None,
    *,
    gold: Any = None,
    task_prior: Any = None,
    init: Any = None,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    wide: bool = False,
    worker_columns: Any = None,
    type: str | None = None,
    **params: Any,
) -> Any:
    """Return the answer to every task, as the kind of dataframe that was given.

    Parameters
    ----------
    data : CrowdLabels, frame, path, (task, worker, label), tasks × workers matrix or engine
        The result for pandas and polars frames is of the same library; otherwise it is a pyarrow
        table. A path is read by ``wisecrowd.read``. With what ``wisecrowd.engines.spark`` returns,
        Spark fits its pack by shards, and the result is a Spark frame.
    method : str or method
        A name that ``wisecrowd.methods()`` lists, or a method with its parameters, such as
        ``OneVsRest("glad")``, which is not changed. "auto", as None, is the default method for the
        type of the labels.
    gold, task_prior, init
        See ``Aggregator.fit``.
    task, worker, label : str, optional
        Names of the columns of a frame or a file; common names are detected.
    wide, worker_columns
        Whether a frame or a file has one row per task, and its worker columns; see
        ``CrowdLabels.from_frame``.
    type : {"labels", "ordered", "numbers", "pairs", "sets", ...}, optional
        "labels" declares that every label is a class, even if labels look like numbers or free
        text. The default is the type that the method takes or that the columns declare: left and
        right mean pairs. Other reading options belong to ``wisecrowd.read`` and
        ``CrowdLabels.from_frame``.
    **params
        Parameters of the method, such as ``max_iter=20``.

    Returns
    -------
    frame
        One row per task: ``task``, ``label`` and ``confidence``, the probability of the label. For
        numbers ``task``, ``value``, ``low`` and ``high``; for pairs one row per item: ``item``,
        ``score``, ``low``, ``high`` and ``rank``; for sets ``task``, ``labels`` and the probability
        ``p_CLASS`` of every class.

    Examples
    --------
    >>> votes = (["t1", "t1", "t1", "t2"], ["ann", "bob", "cem", "ann"], ["x", "x", "y", "y"])
    >>> table = aggregate(votes, "dawid-skene", max_iter=10)
    >>> table.column_names, table["label"].to_pylist()
    (['task', 'label', 'confidence'], ['x', 'y'])
    """
    model = None if method is None or names_default(method) else _configured(method, params)
    if hasattr(data.__class__, "fit_answers"):  # an engine over a pack
        given = {
            "gold": gold, "task_prior": task_prior, "init": init, "task": task, "worker": worker,
            "label": label, "wide": wide or None, "worker_columns": worker_columns, "type": type,
        }  # fmt: skip
        return _on_engine(data, model, {k: v for k, v in given.items() if v is not None}, params)
    labels = labels_of(
        data, task=task, worker=worker, label=label, wide=wide or None,
        worker_columns=worker_columns, type=type_for(model, type),
    )  # fmt: skip
    if model is None:
        model = _configured(kind_of(labels).default_method, params)
    model.fit(labels, gold=gold, task_prior=task_prior, init=init)
    table = model.main_columns()
    ids = next(iter(table))
    names = model._kind().answers.shown or list(table)[1:]
    shown = {name: table[name] for name in (ids, *names)}
    return as_frame(shown, labels.frame_library)


def _on_engine(
    engine: Any, model: Aggregator | None, given: Mapping[str, Any], params: Mapping[str, Any]
) -> Any:
    """Return the answers of an engine over a pack."""
    if given:
        raise ParameterError(
            f"{next(iter(given))} does not go with a pack on an engine; give it to wisecrowd.pack, "
            "or read the pack into memory with wisecrowd.read."
        )
    if model is None:
        model = _configured(get_kind(engine.pack.summary.kind).default_on_packs(), params)
    return engine.fit_answers(model)


def type_for(model: Aggregator | None, type: str | None) -> str | None:
    """Return the type to read labels as, for a method; None lets the data declare it.

    Methods that take classes also take ordered ones.
    """
    declared = None if type is None else get_kind(type)
    if model is None or type == model.takes:
        return type
    own = model._kind()  # or the error for a kind that is not known here
    if declared is None:
        return None if own.also_fits else own.name
    if declared.name in own.also_fits:
        return type
    name = kebab_case(model.__class__.__name__)
    raise ParameterError(
        for_reader(f"{name} takes {model.takes}, and type is {type!r}",
                   f"{name} takes --type {model.takes}, and {type} are given")
        + "; choose another method or type."
    )  # fmt: skip


def labels_of(data: Any, **options: Any) -> Any:
    """Return data of any form, including a path, as the container of their type.

    Parameters
    ----------
    data : object
    **options
        Options of ``CrowdLabels.from_frame`` and ``wisecrowd.read``; None means not given.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(data, str | os.PathLike):
        from wisecrowd.io.tables import read

        return read(data, **given)
    if isinstance(data, Annotations) and "type" not in given:
        given["type"] = kind_of(data).name
    if not isinstance(data, Annotations | np.ndarray | list | tuple):
        kind = get_kind(given.get("type") or _declared_by_columns(data, given))
        return kind.container.from_frame(data, **given)
    container = get_kind(given.get("type", LABELS)).container
    kind = given.pop("type", None)
    if given:
        raise ParameterError(
            f"{next(iter(given))} is for frames and files, and the data is a "
            f"{type(data).__name__}; leave it out."
        )
    return container.coerce(data, type=kind)


def _declared_by_columns(frame: Any, given: Mapping[str, Any]) -> str:
    """Return the kind that the columns of a frame declare; classes if they declare none."""
    names = frame if isinstance(frame, Mapping) else getattr(frame, "columns", ())
    if not isinstance(frame, Mapping) and hasattr(frame, "column_names"):
        names = frame.column_names
    found = kind_of_columns([str(name) for name in names])
    if found is None or found[0] not in kind_names() or "wide" in given:
        return LABELS
    return found[0]


def _configured(method: str | Aggregator, params: Mapping[str, Any]) -> Aggregator:
    """Return a method with its parameters set; a given method is not changed."""
    if not isinstance(method, str | Aggregator):
        raise ParameterError(
            f"method is {method!r}; give a name such as 'dawid-skene', or a method."
        )
    known = (get_method(method) if isinstance(method, str) else method)._parameter_names()
    for name in params:
        if name in READING_OPTIONS and name not in known:
            raise ParameterError(
                f"{name} is an option of wisecrowd.read and CrowdLabels.from_frame; give aggregate "
                "the labels that they return."
            )
    if isinstance(method, str):
        return make_method(method, params)
    return copy.deepcopy(method).set_params(**params)


def make_method(name: str, params: Mapping[str, Any], kind: str = "aggregation") -> Aggregator:
    """Return an unfitted method by name; the error for an unknown parameter suggests a name.

    Parameters of a nested method are written as ``method__tol``.

    Examples
    --------
    >>> make_method("dawid-skene", {"max_iter": 20})
    DawidSkene(max_iter=20)
    """
    cls = get_method(name, kind)
    known = cls._parameter_names()
    for given in params:
        own = given.partition("__")[0]
        if own not in known:
            raise ParameterError(
                f"{kebab_case(cls.__name__)} has no parameter {own!r}"
                + f"{suggestion(own, known)}; it has {', '.join(known) or 'none'}."
                + _hint_of_default(kebab_case(cls.__name__))
            )
    try:
        method: Aggregator = cls(**{key: value for key, value in params.items() if "__" not in key})
    except TypeError as error:  # a parameter without default was left out
        raise ParameterError(f"Cannot set up {kebab_case(cls.__name__)}: {error}.") from None
    for key, value in params.items():
        own, _, nested = key.partition("__")
        if nested and not hasattr(getattr(method, own), "set_params"):
            raise ParameterError(f"{own} of {kebab_case(cls.__name__)} has no parameters: {key}.")
        if nested:
            method.set_params(**{key: value})
    return method


def _hint_of_default(name: str) -> str:
    """Return how to set the parameter of another method, for a default that nobody named."""
    if name != get_kind(LABELS).default_method:
        return ""
    named = for_reader('name a method, such as method="dawid-skene"', "name a method with -m")
    return f" To set a parameter of another method, {named}."


def load(path: str | os.PathLike[str], *, module: Any = None) -> Any:
    """Load a fitted method that ``method.save(path)`` wrote; no code in the files is run.

    Parameters
    ----------
    path : str or path-like
        The folder.
    module : torch module or callable, optional
        The network, if the method was trained with a custom one.
    """
    from wisecrowd.storage.saved_methods import load as load_method

    return load_method(path, module=module)


class Versions(Mapping[str, str]):
    """Versions of everything that can change a result, displayed as a small table.

    Examples
    --------
    >>> Versions({"wisecrowd": "1.0", "numpy": "2.0"})
    wisecrowd  1.0
    numpy      2.0
    """

    def __init__(self, found: Mapping[str, str]) -> None:
        self._found = dict(found)

    def __getitem__(self, name: str) -> str:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        width = max(map(len, self._found), default=0)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in self._found.items())


def show_versions() -> Versions:
    """Return the versions of wisecrowd, Python and the libraries it uses, for a bug report.

    No library is imported for this.

    Examples
    --------
    >>> "numpy" in show_versions()
    True
    """
    from wisecrowd.engines.threads import get_threads

    libraries = (
        "numpy", "scipy", "numba", "narwhals", "pyarrow", "typer", "rich",
        "pandas", "polars", "scikit-learn", "torch", "safetensors",
    )  # fmt: skip
    return Versions(
        {
            "wisecrowd": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "threads": str(get_threads()),
            **{name: _installed(name) for name in libraries},
        }
    )


def _installed(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"
