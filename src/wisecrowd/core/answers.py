"""Answers: the results of a fit for every task, in the form of one kind of label.

Answers of a crowd of one worker claim little, for all kinds: nothing shows how good the worker is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved
from wisecrowd.core.types import Floats

ONE_WORKER = "one-worker"  # id of the finding
MOST_ALONE = 0.8  # largest probability of an answer by one worker


def only_worker(data: Annotations) -> Any:
    """Return the id of the only worker with labels of positive weight; None if there are more.

    Examples
    --------
    >>> from wisecrowd import CrowdLabels
    >>> only_worker(CrowdLabels.from_arrays(["t", "u"], ["ann", "ann"], ["a", "b"]))
    'ann'
    """
    worker = data.worker if data.weight is None else data.worker[data.weight > 0]
    if len(worker) == 0 or (worker != worker[0]).any():
        return None
    return data.workers[worker[:1]].tolist()[0]


def one_worker_finding(worker: Any, claim: str) -> Finding:
    """Return the finding on a crowd of one worker; ``claim`` says what follows for the answers."""
    return Finding(
        ONE_WORKER, "medium", 1.0, (worker,),
        f"All labels are by one worker ({worker!r}), and nothing shows how good this worker is: "
        f"{claim}.",
        "Let a second worker label some of the tasks.",
    )  # fmt: skip


def capped_rows(probas: Any, most: float) -> Any:
    """Return probabilities (n, K) without one above ``most``; the rest is spread over all classes.

    Examples
    --------
    >>> capped_rows(np.array([[1.0, 0.0], [0.6, 0.4]]), 0.8)
    array([[0.8, 0.2],
           [0.6, 0.4]])
    """
    if probas.shape[1] < 2:
        return probas
    if hasattr(probas, "tocsr"):  # what a sparse row lacks belongs to classes it does not store
        top = np.asarray(probas.max(axis=1).todense()).ravel()
        found = probas.tocsr(copy=True)
        found.data *= np.repeat(most / np.maximum(top, most), np.diff(found.indptr))
        return found
    even, top = 1 / probas.shape[1], probas.max(axis=1, keepdims=True)
    if even >= most:
        return probas
    over = (most - even) / np.maximum(top - even, most - even)
    return np.where(top > most, even + (probas - even) * over, probas)


def capped_shares(probas: Floats, most: float) -> Floats:
    """Return probabilities of single events between ``1 - most`` and ``most``."""
    return np.clip(probas, 1 - most, most)


Columns = dict[str, NDArray[Any]]
Learned = Mapping[str, Any]  # published attributes by name, such as those in vars(method)


class Answers:
    """Base of the answers of all kinds; subclasses define attributes, tables and scores.

    The tables use only attributes that a fit has published, because a method loaded from a file
    has nothing else.
    """

    # Axes and values of the attributes that `attributes` returns.
    saves: ClassVar[Mapping[str, Saved]] = {}
    # What follows for the answers if all labels are by one worker.
    alone: ClassVar[str] = f"no probability is above {MOST_ALONE}"
    # The columns of the main table that `wisecrowd.aggregate` returns; all of them if empty.
    shown: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return the result of ``_fit`` or ``_predict`` as answers."""
        if not isinstance(given, cls):
            raise TypeError(f"The method must return {cls.__name__}, not {type(given).__name__}.")
        return given

    @classmethod
    def of_fit(cls, learned: Learned, rows: NDArray[np.integer[Any]]) -> Self:
        """Return the answers that a fit has published, for some of its tasks."""
        raise TypeError(f"{cls.__name__} must define of_fit.")

    def capped(self, most: float) -> Self:
        """Return the answers without a probability above ``most``; labels stay."""
        return self

    def attributes(self, known: Learned) -> dict[str, Any]:
        """Return the attributes to publish.

        Parameters
        ----------
        known : mapping of name to value
            The attributes that the container publishes.
        """
        raise TypeError(f"{type(self).__name__} must define attributes.")

    def judged(self, fit: Fit, data: Any) -> Fit:
        """Return the fit with what its answers to ``data`` say about the workers."""
        return fit

    def score(self, truth: Any, data: Any, known: Learned) -> float:
        """Return the score of the answers to the tasks of ``data``; larger is better."""
        raise TypeError(f"{type(self).__name__} must define score.")

    @classmethod
    def task_columns(cls, learned: Learned) -> Columns:
        """Return columns with one value per task; the first is the answer itself."""
        raise TypeError(f"{cls.__name__} must define task_columns.")

    @classmethod
    def main_columns(cls, learned: Learned) -> Columns:
        """Return the main table: by default one row per task, with its id and its labels."""
        columns = cls.task_columns(learned)
        return {"task": learned["tasks_"], **columns, "n_labels": learned["labels_per_task_"]}

    @classmethod
    def worker_columns(cls, learned: Learned) -> Columns:
        """Return columns with one value per worker."""
        return {}

    @classmethod
    def soft_columns(cls, learned: Learned) -> Columns:
        """Return the probability of every class, one column each, if the kind has classes."""
        raise ParameterError(
            "Only classes have probabilities, and these answers are not classes; use "
            + for_reader("task_columns.", "no --soft.")
        )

    @classmethod
    def label_law(cls, learned: Learned) -> Any:
        """Return p(label | class, worker, task) that attributes define; None if they do not."""
        return None

    @classmethod
    def counts(cls, learned: Learned) -> dict[str, int]:
        """Return counts for a summary; the keys are plural nouns."""
        return {}

    @classmethod
    def fault(cls, learned: Learned) -> str:
        """Describe an inconsistency between attributes that are valid one by one, or return ""."""
        return ""
