r"""Ties as results of their own: the base of Davidson and Rao-Kupper, and Davidson's terms.

.. math:: p(\text{left}, \text{right}, \text{tie}) \propto (e^{x/2}, e^{-x/2}, e^\theta)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from wisecrowd.core.parameter_checks import Flag, Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import NUMBER, Saved
from wisecrowd.core.statistics import log_softmax_rows
from wisecrowd.core.types import Floats
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.base import ComparisonMethod
from wisecrowd.kinds.pairs.methods.bradley_terry import start_scores
from wisecrowd.kinds.pairs.methods.comparisons import (
    Votes,
    agreement,
    pair_votes,
    require_votes,
    single_votes,
)
from wisecrowd.kinds.pairs.methods.covariance import check_clusters
from wisecrowd.kinds.pairs.methods.vote_laws import (
    VoteLaw,
    fitted,
    maximise,
    uncertain_scores,
)

LEVEL_PRECISION = 1 / 25  # of the normal prior of θ or log ε: only data without ties feel it
SIDE_PRECISION = 1.0  # of the normal prior of a side bias that all workers share


class TieTerms(NamedTuple):
    """Log-likelihood of each row and its derivatives in x and θ, (n_rows,) each."""

    value: Floats
    to_x: Floats
    to_level: Floats


def davidson_terms(x: Floats, level: Floats, counts: Floats) -> TieTerms:
    """Return the log-likelihood of votes and its derivatives.

    Parameters
    ----------
    x : (n_rows,) log-odds of left against right
    level : (n_rows,) or a number, θ
    counts : (n_rows, 3) weight of the votes for left, right and tie

    Examples
    --------
    >>> davidson_terms(np.zeros(1), np.zeros(1), np.array([[1.0, 0, 0]])).to_x.tolist()
    [0.5]
    """
    logs = log_softmax_rows(x / 2, -x / 2, level)
    p, total = np.exp(logs), counts.sum(axis=1)
    return TieTerms(
        (counts * logs).sum(axis=1),
        0.5 * (counts[:, 0] - counts[:, 1]) - 0.5 * total * (p[:, 0] - p[:, 1]),
        counts[:, 2] - total * p[:, 2],
    )


def shared_prior(shared: Floats) -> tuple[float, Floats]:
    """Return the log prior of (θ or log ε, side bias) and its gradient; normal with mean 0."""
    precision = np.array([LEVEL_PRECISION, SIDE_PRECISION])[: len(shared)]
    return -0.5 * float(precision @ shared**2), -precision * shared


def first_level(counts: Floats) -> float:
    """Return θ for equal items, to start from."""
    ties, decided = float(counts[:, 2].sum()), float(counts[:, :2].sum())
    return float(np.log(2 * (ties + 0.5) / (decided + 0.5)))


class TieLaw(VoteLaw, Protocol):
    """The law of a vote with one shared parameter of ties, and a side bias behind it."""

    published: ClassVar[str]  # the attribute with the value of ties

    def first_tie(self, votes: Votes) -> float:
        """Return the parameter at which equal items tie as often as in these votes."""

    def tie_value(self, parameter: float) -> float:
        """Return the published value of a parameter."""

    def outcome_logs(self, x: Floats, value: float) -> Floats:
        """Return the log-probabilities (n_rows, 3) of left, right and tie at log-odds (n_rows,)."""


@dataclass(eq=False, repr=False, kw_only=True)
class TieMethod(ComparisonMethod):
    """Base of the methods with one parameter of ties; subclasses have a law, made of the prior."""

    prior: float = 0.5
    side: bool = False
    cluster: str = "auto"
    max_iter: int = 500
    tol: float = 1e-7

    law: ClassVar[type[Any]]
    saves: ClassVar[dict[str, Saved]] = {
        "side_bias_": replace(NUMBER, optional=lambda method: not method.side),
        "side_bias_error_": replace(NUMBER, optional=lambda method: not method.side),
    }

    limits: ClassVar[Limits] = {
        "prior": Number(0.0, 1000000.0),
        "side": Flag(),
        "cluster": check_clusters,
    }

    def _fit(self, problem: Problem[CrowdPairs, None]) -> Fit:
        data = problem.data
        law: TieLaw = self.law(self.prior)
        votes = single_votes(data)
        require_votes(votes, self.prior)
        shared = np.array([law.first_tie(votes), 0.0][: 1 + self.side])
        start = start_scores(data, self.prior), shared, np.zeros((data.n_workers, 0))
        rows = votes if self.side else pair_votes(data)
        at = maximise(law, rows, start, self.max_iter, self.tol)
        answers, errors, clusters = uncertain_scores(law, votes, at, data, self.cluster)
        extra: dict[str, Any] = {law.published: law.tie_value(at.shared[0])}
        if self.side:
            extra |= {"side_bias": float(at.shared[1]), "side_bias_error": float(errors[1])}
        return fitted(answers, at, clusters, data, agreement(data, answers.scores), extra)

    def _outcome_logs(self, data: CrowdPairs) -> Floats:
        law: TieLaw = self.law(self.prior)
        x = self.scores_[data.left] - self.scores_[data.right]
        x = x + (self.side_bias_ if self.side else 0.0)
        return law.outcome_logs(x, vars(self)[f"{law.published}_"])
