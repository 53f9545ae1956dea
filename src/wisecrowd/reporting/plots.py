"""Plots of fitted methods and of replays; they need matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from wisecrowd.core.exceptions import DataError, MissingDependencyError, ParameterError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.reporting.display import shorten, shown
from wisecrowd.storage.atomic import atomic_write

FORMATS = ("png", "svg", "pdf")
MOST_CLASSES = 40  # maximum number of readable names on an axis


def plot_workers(model: Any, ax: Any = None) -> Any:
    """Draw agreement with the result against number of labels, one dot per worker."""
    model._require_fitted()
    axes = _axes(ax, "plot_workers")
    agreement = np.asarray(model.worker_accuracy_)
    known = model.labels_per_worker_ > 0
    axes.plot(model.labels_per_worker_[known], agreement[known], "o", markersize=4, alpha=0.8)
    axes.set(
        xscale="log", xlabel="labels", ylabel="agreement with the result", ylim=(-0.02, 1.02)
    )  # fmt: skip
    axes.set_title(f"{int(known.sum())} workers")
    return axes


def plot_confusion(model: Any, worker: Any, ax: Any = None) -> Any:
    """Draw p(label | class) of one worker: rows are classes, columns labels."""
    model._require_fitted()
    confusion = getattr(model, "confusion_", None)
    if not isinstance(confusion, np.ndarray):
        raise ParameterError(
            f"{type(model).__name__} has no confusion matrices; fit DawidSkene, for instance."
        )
    code = int(lookup([worker], model.workers_)[0])
    if code < 0:
        raise DataError(
            f"There is no worker {worker!r} in the fit{suggestion(worker, model.workers_)}."
        )
    axes = _axes(ax, "plot_confusion")
    image = axes.imshow(confusion[code], vmin=0, vmax=1, cmap="Blues")
    axes.figure.colorbar(image, ax=axes, label="probability")
    if len(model.classes_) <= MOST_CLASSES:
        names = [_literal(name) for name in model.classes_.tolist()]
        places = np.arange(len(names))
        axes.set_xticks(places, names, rotation=45, ha="right")
        axes.set_yticks(places, names)
    axes.set(xlabel="label", ylabel="class")
    axes.set_title(f"worker {_literal(worker)}")
    return axes


def plot_convergence(model: Any, ax: Any = None) -> Any:
    """Draw the objective after each iteration."""
    model._require_fitted()
    history = np.asarray(model.history_, dtype=np.float64).ravel()
    if not len(history):
        raise ParameterError(f"{type(model).__name__} keeps no history: it does not iterate.")
    axes = _axes(ax, "plot_convergence")
    axes.plot(np.arange(1, len(history) + 1), history, marker=".")
    axes.set(xlabel="iteration", ylabel="objective")
    axes.set_title(type(model).__name__ + ("" if model.converged_ else ", not converged"))
    return axes


def plot_replay(table: Mapping[str, Any], n_labels: int, ax: Any = None) -> Any:
    """Draw accuracy against labels for each policy, with two standard errors of the seeds.

    Parameters
    ----------
    table : mapping of str to sequence
        Columns ``policy``, ``budget``, ``accuracy`` and ``standard_error``, as of a replay.
    n_labels : int
        Labels of the whole log.
    ax : matplotlib axes, optional
    """
    axes = _axes(ax, "plot_replay")
    policy = np.asarray(table["policy"], dtype=object)
    budget, accuracy, error = (
        np.asarray(table[name], dtype=np.float64)
        for name in ("budget", "accuracy", "standard_error")
    )
    for name in dict.fromkeys(policy.tolist()):
        own = np.flatnonzero(policy == name)
        own = own[np.argsort(budget[own], kind="stable")]
        axes.errorbar(
            budget[own] * n_labels, accuracy[own], yerr=2 * np.nan_to_num(error[own]),
            marker="o", markersize=4, linewidth=1.2, capsize=2, label=_literal(name),
        )  # fmt: skip
    axes.set(xlabel="labels", ylabel="accuracy")
    axes.legend()
    return axes


def save_plot(axes: Any, path: str) -> None:
    """Write the figure of some axes as .png, .svg or .pdf, complete or not at all."""
    with atomic_write(path, "wb") as file:
        axes.figure.savefig(file, format=plot_format(path), dpi=150)
    pyplot("save_plot").close(axes.figure)


def plot_format(path: str) -> str:
    """Return the format that a file's name asks for.

    Examples
    --------
    >>> plot_format("replay.svg")
    'svg'
    """
    kind = path.rpartition(".")[2].lower()
    if kind not in FORMATS:
        raise ParameterError(
            f"A plot is written as {', '.join(FORMATS)}; let the name {path} end in one of these."
        )
    return kind


def _literal(value: Any) -> str:
    """Escape an id for matplotlib, in which a dollar sign would start a formula."""
    return shorten(shown(value), 20).replace("$", r"\$")


def _axes(ax: Any, what: str) -> Any:
    return pyplot(what).subplots(layout="constrained")[1] if ax is None else ax


def pyplot(what: str) -> Any:
    """Return matplotlib.pyplot, or raise the error that says which function needs it."""
    try:
        return import_module("matplotlib.pyplot")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise MissingDependencyError(
            f"{what} draws with matplotlib; install it with pip install matplotlib."
        ) from None
