"""Dawid and Skene's model for workers who depend on each other in groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.base import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.families.grouped_confusion import GroupedConfusionEM
from wisecrowd.inference.priors import as_row_prior

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class GroupAwareDawidSkene(GroupedConfusionEM):
    r"""Groups of dependent workers report one hidden opinion each; a confusion matrix for both.

    .. math::
        z_i \sim Cat(\pi), \qquad w_{ig} \mid z_i = k \sim Cat(\Xi_{gk\cdot}), \qquad
        y_{ij} \mid w_{ig(j)} = c \sim Cat(\theta_{jc\cdot})

    Use it when some workers copy, talk to each other, or are models of one kind: a group counts as
    one opinion, however large. Workers on their own are as in Dawid-Skene. Cost per iteration:
    O(annotations × classes + opinions of groups × classes²).

    Parameters
    ----------
    groups : "auto", int, mapping or (n_workers,) array
        "auto" finds groups of workers who agree more than their skills explain and leaves all
        others on their own; an integer divides all workers into so many groups; a mapping from
        worker to group, or an array, gives them.
    prior : "weak", None, number, (n_classes, n_classes) array or prior object
        Pseudo-counts of all confusion rows, as in Dawid-Skene. Groups have "weak" where workers
        have a prior each.
    class_prior, max_iter, tol, n_init, random_state
        See :class:`~wisecrowd.families.confusion.ConfusionEM`. The start is a soft vote in which a
        group has one vote.

    Attributes
    ----------
    group_ : (n_workers,)
        Number of each worker's group, -1 for workers on their own.
    group_confusion_ : (n_groups, n_classes, n_classes)
        :math:`\Xi`: what a group says, by class.
    member_confusion_ : (n_workers, n_classes, n_classes)
        :math:`\theta`: what a worker makes of the group's opinion, or of the class if alone.
    confusion_ : (n_workers, n_classes, n_classes)
        p(label | class) of each worker: :math:`\Xi_{g(j)} \theta_j` for members.
    class_prior_ : (n_classes,)

    Notes
    -----
    Without groups this is :class:`~wisecrowd.aggregation.dawid_skene.DawidSkene`. Groups are found
    once, before the fit, from pairs of workers alone.

    References
    ----------
    A. Jaffe, E. Fetaya, B. Nadler, T. Jiang and Y. Kluger (2016). Unsupervised ensemble learning
    with dependent classifiers. AISTATS, 351-360.

    Examples
    --------
    >>> from wisecrowd.core.labels import CrowdLabels
    >>> votes = np.array([[0, 0, 0], [1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 1, 1], [1, 0, 0]])
    >>> copied = np.hstack([votes, np.repeat(votes[:, :1], 9, axis=1)])
    >>> groups = [0, 1, 2] + [0] * 9
    >>> GroupAwareDawidSkene(groups=groups).fit(CrowdLabels.from_matrix(copied)).labels_
    array([0, 1, 0, 1, 1, 0])
    """

    groups: Any = "auto"
    prior: Any = "weak"
    class_prior: Any = "auto"
    max_iter: int = 500
    tol: float = 1e-6
    n_init: int = 1
    random_state: Any = 0

    promises: ClassVar[Tags] = Tags(monotone=True, inductive=True, likelihood=True, confusion=True)
    footprint = Footprint(label=8.4, cell=18.4, confusion=100.0, pair_table=80.0)

    def _prepare(self, workers: NDArray[Any], n_classes: int) -> None:
        self._alpha = as_row_prior(self.prior, self._class_ids).pseudo_counts(workers, n_classes)
        self._group_alpha = self._alpha
        if self._alpha.ndim > 2:  # one for every worker, and none for groups
            self._group_alpha = as_row_prior("weak").pseudo_counts((), n_classes)
