"""How methods of each kind are compared: scores against a truth, and of held-out labels without.

The module ``scorer`` of a kind also scores files of results, if there is something to score:
``evaluate(found, truth, notes)`` returns an :class:`Evaluation` of a :class:`ResultFile`. ``truth``
is the :class:`~wisecrowd.cli.run.inputs.KnownFile` of the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.kinds import kind_of
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.types import Floats
from wisecrowd.inference.held_out import HeldOutScore

NEAR_BEST = "near best: the difference from the best score is at most its own standard error"
Scores = dict[str, float]
MakeFit = Callable[[Any], Aggregator]  # fits a new copy of a method to some annotations


class Scorer(Protocol):
    """Scores of the methods of one kind.

    Attributes
    ----------
    with_truth : tuple of str
        Scores against a truth; the first ranks the methods, and larger is better.
    claims : tuple of str
        What a fit says of itself, without a truth.
    explanations : tuple of str
        Sentences about the columns of a comparison without a truth.
    """

    with_truth: ClassVar[tuple[str, ...]]
    claims: ClassVar[tuple[str, ...]]
    explanations: ClassVar[tuple[str, ...]]

    def match(self, truth: Any, data: Any) -> Any:
        """Return the truth in the form that :meth:`score` takes; None without a truth."""

    def score(self, model: Any, truth: Any) -> dict[str, float]:
        """Return the scores of a fit against the truth."""

    def plan(self, data: Any) -> Any:
        """Return the labels to hide; ``n_hidden`` is their number."""

    def score_held_out(self, fit: MakeFit, plan: Any) -> HeldOutScore:
        """Return the scores of labels that were hidden from the fits."""

    def claim(self, model: Any, data: Any) -> dict[str, float]:
        """Return what a fit says of itself."""

    def agreement(self, one: Any, other: Any) -> float:
        """Return how far two fits agree, at most 1."""


def scorer_of(data: Annotations) -> Scorer:
    """Return the scorer of the kind of some annotations."""
    kind = kind_of(data)
    module = kind.part("scorer")
    if module is None:
        raise ParameterError(
            f"Methods for {kind.name} are not compared, because the kind has no scorer; use "
            + for_reader("wisecrowd.aggregate.", "wisecrowd aggregate.")
        )
    scorer: Scorer = module.SCORER()
    return scorer


# --------------------------------------------------------------------------------- files of results


class Evaluation(NamedTuple):
    """Scores by name, the number of scored answers, that of all, and what the answers are about.

    ``headings`` has the scores that a table calls otherwise than those of other answers.
    """

    scores: dict[str, float]
    n_scored: int
    n_answers: int
    noun: str
    headings: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class ResultFile:
    """A file of results or of true answers, as ``wisecrowd aggregate`` writes it.

    Attributes
    ----------
    path : str
    content : frame with ``column_names``, or the container of an export that is not a table
    """

    path: str
    content: Any

    @property
    def names(self) -> list[str]:
        """The names of its columns; none if it is not a table."""
        return list(getattr(self.content, "column_names", ()))

    def column(self, name: str) -> list[Any]:
        """Return a column."""
        values: list[Any] = self.content[name].to_pylist()
        return values

    def refuse_columns(self, needed: str) -> DataError:
        """Return the error that names the columns, and those that the results need."""
        listed = ", ".join(repr(name) for name in self.names)
        return DataError(f"{self.path} has the columns {listed}, and {needed}.")

    def require_once(self, ids: Sequence[Any], noun: str) -> None:
        """Refuse ids that occur twice."""
        if len(set(ids)) < len(ids):
            twice = next(one for one in ids if ids.count(one) > 1)
            raise DataError(f"{noun} {twice!r} is in {self.path} twice; keep one row.")

    def number(self, value: Any, one: Any) -> float:
        """Return a number, NaN where missing, or an error that names the answer."""
        if value in (None, ""):
            return float("nan")
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("inf")
        if not np.isfinite(number):
            raise DataError(f"{self.path} gives {one!r} the value {value!r}; give a finite number.")
        return number

    def share(self, value: Any, one: Any) -> float:
        """Return a probability, NaN where missing, or an error that names the answer."""
        share = self.number(value, one)
        if not (np.isnan(share) or 0.0 <= share <= 1.0):
            raise DataError(
                f"{self.path} gives {one!r} the probability {value!r}; it must be in [0, 1]."
            )
        return share


def evaluate_numbers(
    found: ResultFile, truth: Any, notes: Any, ids: str, number: str,
    score: Callable[..., dict[str, float]], limits: Sequence[str] = (),
) -> Evaluation:  # fmt: skip
    """Score a file of numbers by id, such as values of tasks or scores of items.

    ``score(true, found, *limits)`` gets None for a limit that the file does not have.
    """
    for name in (ids, number):
        if name not in found.names:
            listed = ", ".join(repr(column) for column in found.names)
            raise DataError(f"{found.path} has no column {name!r}; there are {listed}.")
    about = found.column(ids)
    found.require_once(about, ids.capitalize())

    def numbers(name: str) -> Floats | None:
        if name not in found.names:
            return None
        return np.array(
            [found.number(x, one) for x, one in zip(found.column(name), about, strict=True)]
        )

    given = [numbers(name) for name in (number, *limits)]
    known, truth_file = dict(zip(*truth.pairs(notes), strict=True)), ResultFile(truth.path, None)
    true = np.array([truth_file.number(known.get(one), one) for one in about])
    n_scored = int(np.count_nonzero(~np.isnan(true)))
    if n_scored < 2:
        raise DataError(
            f"The truth names {n_scored} of the {len(true)} answers in {found.path}, and scores "
            "need two; it needs the same ids."
        )
    return Evaluation(score(true, *given), n_scored, len(true), f"{ids}s")
