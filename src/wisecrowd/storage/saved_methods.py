"""Saved methods: parameters and everything learned, in model files that run nothing when read."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np

from wisecrowd.core.estimator import Estimator
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdError
from wisecrowd.core.findings import Finding
from wisecrowd.core.kinds import IN_BLOCK
from wisecrowd.core.registry import PACKAGES, get_method, kebab_case, method_names
from wisecrowd.core.saved_attributes import require_declared, require_sound
from wisecrowd.storage.models import load_state, save_state

# The only classes besides methods that a model file may name; they live in a layer above this one.
PRIORS = (
    "DirichletRows", "Discrete", "History", "MixturePrior", "OneCoinPrior", "TwoCoin",
    "WeakDiagonal",
)  # fmt: skip

LEARNING = PACKAGES[1]
_PARAMETERS, _KEPT = "parameters", "kept"
_METHOD, _PRIOR, _FINDING, _MODULE = "$method", "$prior", "$finding", "$module"
_DATES = {date: "M8[D]", datetime: "M8[us]", timedelta: "m8[us]"}
_LEARNED = re.compile(r"[A-Za-z]\w*_")


def save(
    method: Estimator, path: str | os.PathLike[str], kept: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted method as a folder of JSON and npy files that is complete or not there.

    Parameters
    ----------
    method : fitted method
        One of the methods that ``wisecrowd.methods()`` lists. Parameters may be numbers, text,
        arrays, priors, and other methods, fitted or not.
    path : str or path-like
        The folder. An older model there is replaced; a folder that holds anything else is left
        alone, with an error.
    kept : mapping of str to value, optional
        What updates need besides: the labels of the fit.

    Raises
    ------
    ParameterError
        If a parameter cannot be written, such as a random generator.
    DataError
        If the folder cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from wisecrowd.core.registry import get_method
    >>> votes = [[0, 0, 1], [1, 1, 0], [0, 0, 0]]
    >>> model = get_method("dawid-skene")(max_iter=5).fit(np.array(votes))
    >>> folder = Path(tempfile.mkdtemp()) / "model"
    >>> save(model, folder)
    >>> load(folder)
    DawidSkene(max_iter=5)
    """
    name, parameters, learned = _take_apart(method)
    files = method._network_files() if hasattr(method, "_network_files") else {}
    more = {} if kept is None else {_KEPT: dict(kept)}
    save_state(path, name, {_PARAMETERS: parameters, **learned, **more}, files)


def load(path: str | os.PathLike[str], *, module: Any = None) -> Any:
    """Return the method that :func:`save` wrote; its ``predict_proba`` answers as before.

    Parameters
    ----------
    path : str or path-like
        The folder.
    module : torch module or callable, optional
        The network, where the method was given one of the user's own: a file holds its weights,
        and never its code.

    Raises
    ------
    DataError
        If the folder is not a saved method, is damaged, or was written by a version that knows
        methods or parameters which this one does not.
    """
    saved = load_state(path)
    learned = dict(saved.state)
    parameters, kept = learned.pop(_PARAMETERS, None), learned.pop(_KEPT, None)
    try:
        if isinstance(parameters, dict) and _MODULE in parameters:
            shown = parameters.pop(_MODULE)
            if module is None:
                raise DataError(
                    f"it was trained with a network of your own ({shown}); give load(module=)"
                )
            parameters[_module_parameter(_class_of(saved.kind))] = module
        method = _put_together(saved.kind, parameters, learned)
        if learned and hasattr(method, "_set_network"):
            method._set_network(saved.files)
        if kept is not None:
            method._kind().updating().restore(method, kept)
        return method
    except (WisecrowdError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError,
            ValueError) as error:  # fmt: skip
        reason, way_out = str(error).rstrip("."), "load it"
        if _package_of(saved.kind) is None:
            reason = f"there is no method {saved.kind!r} here"
            way_out = f"if its kind is your own, load it inside {IN_BLOCK}, otherwise"
        raise DataError(
            f"Cannot load the method at {os.fspath(path)}: {reason}; {way_out} with the version of "
            "wisecrowd that saved it, or fit it again."
        ) from error


# ----------------------------------------------------------------------------------------- to state


def can_be_loaded(cls: type[Estimator]) -> bool:
    """Return whether a class is found again by its name, as loading needs it."""
    name = _name_of(cls)
    return _package_of(name) is not None and _class_of(name) is cls


def _take_apart(method: Estimator) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return a method's name, parameters and learned attributes as storable values."""
    cls = type(method)
    name = _name_of(cls)
    if not can_be_loaded(cls):
        raise ParameterError(
            f"Cannot save {cls.__name__}: only the methods that wisecrowd.methods() lists can be "
            "found again when loading."
        )
    given = method.get_params(deep=False)
    module = _module_parameter(cls)
    if not isinstance(given.get(module), str | None):
        given[_MODULE] = type(given.pop(module)).__name__
    parameters = {key: _as_storable(value, f"{_PARAMETERS}.{key}") for key, value in given.items()}
    names = [key for key in vars(method) if _LEARNED.fullmatch(key)]
    if names:
        _require_loadable(method, names)
    return name, parameters, {key: _as_storable(vars(method)[key], key) for key in names}


def _module_parameter(cls: type[Any]) -> str:
    """Return the parameter that takes a network; a file holds its weights, and never its code."""
    return str(getattr(cls, "module_parameter", "module"))


def _require_loadable(method: Estimator, names: list[str]) -> None:
    """See that a method is as declared: what is written must be read again."""
    require_declared(method, names)
    try:
        require_sound(method)
    except DataError as error:
        raise DataError(
            f"Cannot save this {type(method).__name__}: {error}; fit it again, to other data or "
            "with other parameters."
        ) from error


def _name_of(cls: type[Any]) -> str:
    """Return the name of a class in files, with its package if an aggregator has the name too."""
    name = kebab_case(cls.__name__)
    learns = cls.__module__.startswith(f"wisecrowd.{LEARNING}.")
    return f"{LEARNING}.{name}" if learns and name in method_names(PACKAGES[0], None) else name


def _class_of(name: str) -> type[Any]:
    return get_method(name.removeprefix(f"{LEARNING}."), _package_of(name) or "aggregation")


def _package_of(name: str) -> str | None:
    plain = name.removeprefix(f"{LEARNING}.")
    kinds = PACKAGES if plain == name else (LEARNING,)
    return next((kind for kind in kinds if plain in method_names(kind, None)), None)


def _as_storable(value: Any, where: str) -> Any:
    """Replace methods and priors, however deep, by mappings that name them."""
    if isinstance(value, np.random.Generator | np.random.RandomState):
        raise ParameterError(
            f"Cannot save {where}: it is a random generator, whose state a file cannot promise to "
            "bring back; use an integer seed and fit again."
        )
    if isinstance(value, Estimator):
        name, parameters, learned = _take_apart(value)
        return {_METHOD: name, _PARAMETERS: parameters, "learned": learned}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if _is_prior(value):
        parts = {f.name: _as_storable(getattr(value, f.name), where) for f in fields(value)}
        return {_PRIOR: type(value).__name__, "fields": parts}
    if isinstance(value, Finding):
        return {_FINDING: vars(value) | {"affected": _as_ids(value.affected)}}
    if isinstance(value, Mapping):
        if taken := {_METHOD, _PRIOR, _FINDING}.intersection(value):
            raise ParameterError(f"Cannot save {where}: the key {min(taken)} is taken.")
        return {key: _as_storable(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_as_storable(item, where) for item in value) if _nests(value) else value
    return value


def _is_prior(value: Any) -> bool:
    name = type(value).__name__
    if name not in PRIORS or not type(value).__module__.startswith("wisecrowd."):
        return False
    return _prior_class(name) is type(value)


def _prior_class(name: str) -> Any:
    """Return the class of a prior by its name, which is one of ``PRIORS``."""
    return getattr(importlib.import_module("wisecrowd.inference.priors"), name)


def _as_ids(affected: tuple[Any, ...]) -> Any:
    """Return ids as an array if they are dates, which a model file holds in arrays only."""
    dtype = _DATES.get(type(affected[0])) if affected else None
    return affected if dtype is None else np.array(affected, dtype)


def _nests(values: list[Any] | tuple[Any, ...]) -> bool:
    """Whether anything in a sequence may hide a method: long lists of numbers are left alone."""
    return not {type(x) for x in values} <= {float, int, str, bool, type(None)}


# --------------------------------------------------------------------------------------- from state


def _put_together(name: str, parameters: Any, learned: Mapping[str, Any]) -> Any:
    """Make the method again; its class comes from the registry and from nowhere else."""
    cls = _class_of(name)
    if _name_of(cls) != name or not isinstance(parameters, dict):
        raise DataError(f"it does not describe the method {name!r}")
    method = cls(**{key: _from_storable(value) for key, value in parameters.items()})
    method._validate_parameters()
    declared = method._saved_attributes()
    for key, value in learned.items():
        if key not in declared:
            raise DataError(f"{key!r} is not the name of something that {name} learns")
        setattr(method, key, _from_storable(value))
    if learned:
        require_sound(method)
    return method


def _from_storable(value: Any) -> Any:
    if isinstance(value, dict):
        if _METHOD in value:
            return _put_together(value[_METHOD], value[_PARAMETERS], value["learned"])
        if _PRIOR in value:
            return _make_prior(value[_PRIOR], value["fields"])
        if _FINDING in value:
            parts = value[_FINDING]
            return Finding(**parts | {"affected": tuple(_plain_ids(parts["affected"]))})
        return {key: _from_storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and _nests(value):
        return type(value)(_from_storable(item) for item in value)
    return value


def _plain_ids(affected: Any) -> Any:
    return affected.tolist() if isinstance(affected, np.ndarray) else affected


def _make_prior(name: Any, parts: Mapping[str, Any]) -> Any:
    if name not in PRIORS:
        raise DataError(f"{name!r} is not a prior that a model file may name")
    return _prior_class(name)(**{key: _from_storable(value) for key, value in parts.items()})
