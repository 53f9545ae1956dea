"""Dawid and Skene's model with a confusion matrix per worker and group of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.attributes import Groups, as_groups, task_groups
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.gold import as_pairs
from wisecrowd.core.messages.descriptions import describe_value
from wisecrowd.core.parameter_checks import check_number, is_auto
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray, SavedValue
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.split_confusion import SplitConfusionEM, SplitModel
from wisecrowd.kinds.classes.methods.dawid_skene import dirichlet_update

STRENGTHS = (50.0, 10.0, 2.0)  # to choose from, besides infinity
LEAST_STRENGTH = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupedModel(SplitModel):
    """A confusion matrix per worker and group, shrunk to the worker's own."""

    n_groups: int
    strength: float

    def worker_update(
        self, counts: Floats, previous: dict[str, Any] | None
    ) -> tuple[Floats, float, dict[str, Any]]:
        """Return the log matrices of the counts plus pseudo-counts around the worker's rows."""
        K = counts.shape[1]
        by_group = counts.reshape(-1, self.n_groups, K, K)
        alpha = self.alpha[:: self.n_groups] if self.alpha.ndim == 3 else self.alpha
        pooled = np.exp(dirichlet_update(by_group.sum(axis=1), alpha)[0])
        around = np.repeat(self.strength * pooled, self.n_groups, axis=0)
        return *dirichlet_update(counts, around), {}


@dataclass(eq=False, repr=False, kw_only=True)
class GroupConfusion(SplitConfusionEM):
    r"""A confusion matrix per worker and group of tasks, shrunk to the worker's own matrix.

    .. math::
        \theta_{jakl} \propto \sum_{i \in a: y_{ij} = l} q_i(k) + \tau\, \theta_{jkl}

    Use it when some workers judge one group of tasks by another measure than the rest, for instance
    defendants by their race. It sees the bias of single workers. It cannot see a bias that the
    tasks carry or that all workers share: only gold labels of every group show that. Cost per
    iteration: O(annotations × classes) and groups × workers × classes²; "auto" fits four more
    times.

    Parameters
    ----------
    task_group : str, mapping of task to group, or (n_tasks,) values
        The groups, or the name of an attribute of the tasks
        (:func:`wisecrowd.fairness.with_task_attributes`). Tasks without a value form a group of
        their own. None is Dawid-Skene.
    group_strength : "auto" or float
        :math:`\tau`, in labels; infinity is Dawid-Skene. "auto" takes the best of 2, 10, 50 and
        infinity by held-out labels, the smallest of a draw, and infinity unless another leads by
        two standard errors.
    prior, class_prior, max_iter, tol, n_init, accelerate, random_state
        As in :class:`DawidSkene`.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        Mean of the worker's matrices over its labels; predictions of new tasks use it.
    group_confusion_ : (groups, n_workers, n_classes, n_classes)
    groups_ : list of str
        Their names; one without a name if the matrices do not differ.
    group_strength_ : float

    References
    ----------
    A. P. Dawid and A. M. Skene (1979). Maximum likelihood estimation of observer error-rates using
    the EM algorithm. Applied Statistics 28(1), 20-28.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> task, worker = np.divmod(np.arange(800), 4)
    >>> city, label = np.where(task % 2, "Oslo", "Rome"), task // 2 % 2
    >>> label[(worker == 3) & (city == "Rome")] = 1  # says 1 whatever it sees in Rome
    >>> crowd = CrowdLabels.from_arrays(task, worker, label)
    >>> model = GroupConfusion(task_group=dict(zip(task.tolist(), city.tolist()))).fit(crowd)
    >>> oslo, rome = model.group_confusion_[:, 3, 0, 1]
    >>> bool(rome - oslo > 0.8)
    True
    """

    task_group: Any = None
    group_strength: Any = "auto"
    prior: Any = "weak"
    class_prior: Any = "auto"
    max_iter: int = 200
    tol: float = 1e-6
    n_init: int = 1
    accelerate: bool = True
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "group_confusion_": SavedArray("groups J K K", "distribution"),
        "groups_": SavedValue(lambda value: _are_names(value), "a list of texts"),
        "group_strength_": SavedValue(
            lambda value: isinstance(value, float | int) and type(value) is not bool and value > 0,
            "a number above 0",
        ),
    }
    promises: ClassVar[Tags] = Tags(inductive=False, predicts=True, confusion=True)
    footprint = Footprint(label=30.0, task=14.0, cell=11.0, confusion=400.0)

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"groups": len(self.groups_) if _are_names(self.groups_) else 0}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        if self.task_group is not None and not hasattr(self.task_group, "__len__"):
            raise ParameterError(
                f"task_group is {describe_value(self.task_group)}; name an attribute of the tasks, "
                "or give a mapping of task to group."
            )
        if not is_auto(self.group_strength) and not _is_infinite(self.group_strength):
            check_number("group_strength", self.group_strength, LEAST_STRENGTH)

    def _fit(self, problem: Problem) -> Fit:
        groups = _groups(self.task_group, problem.data)
        code, names = np.zeros(problem.data.n_tasks, np.int32), [""]
        if groups is not None:
            code, names = groups.code, list(groups.names)
            if groups.n_missing:  # a group of their own
                code, names = np.where(code < 0, len(names), code).astype(np.int32), [*names, ""]
        part = code[problem.data.task]
        strength: float | None = None
        if is_auto(self.group_strength):
            strength = self._best_strength(problem, part, len(names), STRENGTHS)
        elif not _is_infinite(self.group_strength) and len(names) > 1:
            strength = float(self.group_strength)
        found = self._fit_parts(problem, part, len(names), strength)
        extra = {
            "group_confusion": found.extra["by_part"],
            "groups": [""] if strength is None else names,
            "group_strength": np.inf if strength is None else strength,
        }
        return replace(found, extra=extra, findings=() if groups is None else (_SHARED,))

    def _split_model(self, shape: dict[str, Any], n_parts: int, strength: float) -> GroupedModel:
        return GroupedModel(**shape, n_groups=n_parts, strength=strength)


def _groups(given: Any, labels: CrowdLabels) -> Groups | None:
    if given is None:
        return None
    if isinstance(given, str):
        return task_groups(labels, given)
    try:
        codes, values = as_pairs(given, labels, "task_group")
    except DataError as error:
        raise ParameterError(str(error)) from None
    if not isinstance(values, tuple):
        return _as_groups(values)
    ids, groups = values
    if (codes < 0).any():
        raise ParameterError(
            f"task_group names {int((codes < 0).sum())} tasks without labels, such as "
            f"{ids[int(np.argmax(codes < 0))]!r}; leave them out."
        )
    aligned = np.full(labels.n_tasks, None, dtype=object)
    aligned[codes] = groups
    return _as_groups(aligned)


def _as_groups(values: Any) -> Groups:
    try:
        return as_groups(values, "task_group")
    except DataError as error:  # here the values are a parameter
        raise ParameterError(str(error)) from None


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and value == np.inf


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


_SHARED = Finding(
    "shared-bias", "info", 0.0, (),
    "Matrices by group show the bias of single workers; a bias that the tasks carry or that all "
    "workers share is not visible in labels.",
    "Give gold labels of each group, 50 or more, to see it.",
)  # fmt: skip
