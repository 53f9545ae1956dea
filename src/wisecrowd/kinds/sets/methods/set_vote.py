"""SetVote: the classes that half of the workers of a task choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.kinds.sets.answers import SetAnswers
from wisecrowd.kinds.sets.methods.base import SetMethod, SetProblem, WorkerSets


@dataclass(eq=False, repr=False, kw_only=True)
class SetVote(SetMethod):
    r"""A class is in the set of a task if at least half of its workers choose it.

    .. math::
        p_{ik} = \frac{\tfrac12 + \sum_j w_{ij} [k \in Y_{ij}]}{1 + \sum_j w_{ij}}

    Use it when you need a baseline, or when workers are equally good and a class is missed as
    often as it is invented. Cost: O(members of all sets).

    Parameters
    ----------
    threshold : float or "cardinality"
        A class is in the set if it is at least this probable. "cardinality" takes as many classes
        as the probabilities sum to.

    Attributes
    ----------
    labels_ : (n_tasks,) str
        The classes of each task, with ``|`` between them.
    probas_ : (n_tasks, n_classes)
        Shares of the votes, with half a vote for and half a vote against each class. Tasks without
        sets have the shares of all votes.
    members_ : (n_tasks, n_classes) bool
        The classes of each task as a table.
    shares_ : (n_classes,)
        Shares of all votes.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Expected share of right decisions about single classes.
    worker_sensitivity_, worker_false_alarm_ : (n_workers,)
        Expected rates over all classes together.
    set_size_, crowd_set_size_ : (n_workers,)
        Mean size of the worker's sets, and of the sets of others on the same tasks.

    Notes
    -----
    Exactly half of the votes is enough: workers miss more classes than they invent.

    References
    ----------
    S. Nowak and S. Rüger (2010). How reliable are annotations via crowdsourcing: a study about
    inter-annotator agreement for multi-label image annotation. MIR, 557-566.

    Examples
    --------
    >>> sets = ["cat|dog", "cat", "dog|bird"]
    >>> SetVote().fit(([1, 1, 1], ["ann", "bob", "cem"], sets)).labels_.tolist()
    ['cat|dog']
    """

    footprint: ClassVar[Footprint | None] = Footprint(cell=30.0)
    saves: ClassVar[dict[str, Saved]] = {"shares_": SavedArray("K", "probability")}

    def _fit(self, problem: SetProblem) -> Fit:
        data = problem.data
        total = max(float(data.weights.sum()), 1e-300)
        shares = np.clip(data.votes.sum(axis=0) / total, 0.0, 1.0)
        probas = _shares(problem, shares)
        worth = WorkerSets.of(data, probas)
        return Fit(
            self._answers(probas), worth.accuracy, worth.error,
            extra={"shares": shares, **worth.published()},
        )  # fmt: skip

    def _predict(self, problem: SetProblem) -> SetAnswers:
        return self._answers(_shares(problem, self.shares_))


def _shares(problem: SetProblem, overall: Floats) -> Floats:
    """Return (n_tasks, n_classes) smoothed shares of the votes; known sets are certain."""
    data, prior = problem.data, problem.prior
    if prior.probas is not None:
        raise ParameterError("SetVote takes no task prior; leave it out, or use SharedTwoCoin.")
    total = data.total_weight[:, None]
    found = np.where(total > 0, (data.votes + 0.5) / (total + 1), overall)
    if prior.known is not None and prior.members is not None:
        found = np.where(prior.known[:, None], prior.members, found)
    return np.asarray(found, dtype=np.float64)
