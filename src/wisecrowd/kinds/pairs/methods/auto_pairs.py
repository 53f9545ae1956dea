"""The default for pairs: held-out votes choose a model."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self, cast

import numpy as np

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError, WisecrowdError
from wisecrowd.core.findings import Finding
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import get_method, kebab_case
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedValue
from wisecrowd.core.types import Floats
from wisecrowd.inference.held_out import HeldOutScore, are_numbers, leader, score_table
from wisecrowd.inference.monitor import stage
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.base import ComparisonMethod
from wisecrowd.kinds.pairs.methods.bradley_terry import BradleyTerry
from wisecrowd.kinds.pairs.outcomes import TIE
from wisecrowd.kinds.pairs.scorer import N_FOLDS, by_worker, held_out_votes

Scores = Mapping[str, Mapping[str, float]]

SIDED = "bradley-terry-side"  # BradleyTerry(side=True)
WITH_TIES = ("davidson", "rao-kupper", "worker-ties", "crowd-bt", SIDED)
WITHOUT_TIES = ("bradley-terry", "worker-ties", "crowd-bt", SIDED)  # rao-kupper is the first then
SAMPLE = 50_000  # votes on which methods are compared
WORKER_ATTRIBUTES = ("reliability", "discrimination", "side", "tie_threshold")


@dataclass(eq=False, repr=False, kw_only=True)
class AutoPairs(ComparisonMethod):
    r"""The model of votes that predicts held-out votes best.

    .. math:: \hat c = \arg\max_c \sum_v \log p_c(y_v)

    over held-out votes :math:`v`, each with its probability by candidate :math:`c`, which was
    fitted without it.

    Use it when you do not know how the workers of your crowd differ: it is the default for pairs.
    One fifth of the votes at a time is hidden, every candidate is fitted to the others, and the
    hidden votes are predicted. The first candidate is kept unless another one leads by more than
    one standard error over workers. Cost: 21 to 26 fits up to 50 000 votes. Above, the votes of
    some workers decide, and all votes fit the chosen model.

    Parameters
    ----------
    candidates : "auto" or names of methods
        Methods to choose from, the preferred one first; ``"bradley-terry-side"`` is
        ``BradleyTerry(side=True)``. "auto" is Davidson, RaoKupper, WorkerTies, CrowdBT and
        ``"bradley-terry-side"``. Without ties, BradleyTerry replaces the first two.

    Attributes
    ----------
    scores_, low_, high_ : (n_items,)
        Scores of the chosen model with mean 0, and their 95% intervals.
    rank_, rank_low_, rank_high_, p_best_, tied_with_best_, component_ : (n_items,)
    covariance_ : (n_items, n_items)
        Covariance of the scores, up to 5000 items.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Those of the chosen model: how often votes agree with the scores.
    reliability_, tie_threshold_, discrimination_, side_ : (n_workers,)
        Those of the chosen model, if it has them.
    chosen_ : str
        Name of the chosen candidate.
    held_out_ : dict of name to {"score", "standard_error", "lead", "lead_error"}
        Mean log-probability of held-out votes and its standard error over workers. ``lead`` is the
        difference to the first candidate, with the standard error of this difference. Empty where
        nothing was chosen.
    members_ : list of fitted methods
        The chosen method.
    reason_ : str
        Sentence that explains the choice.

    Notes
    -----
    With fewer than 5 votes the first candidate is taken. Candidates that cannot be fitted are left
    out. The chosen score is slightly too high, because it is the best of several.

    If all workers turn around some of their votes, no candidate repairs the scale: scores are too
    small, and their intervals cover too few of the true ones.

    A pack is fitted by BradleyTerry, shard by shard; the other candidates need all votes in memory.

    References
    ----------
    M. Stone (1974). Cross-validatory choice and assessment of statistical predictions. Journal of
    the Royal Statistical Society B 36(2), 111-147.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.votes(5, 10, 300, random_state=0)
    >>> model = AutoPairs().fit(crowd.pairs)
    >>> model.chosen_, list(model.held_out_)
    ('bradley-terry', ['bradley-terry', 'worker-ties', 'crowd-bt', 'bradley-terry-side'])
    """

    candidates: Any = "auto"

    promises: ClassVar[Tags] = Tags(
        inductive=False, likelihood=True, exact_replication=False, shardable=True
    )
    saves: ClassVar[dict[str, Saved]] = {
        "chosen_": SavedValue(lambda value: isinstance(value, str), "a name"),
        "held_out_": SavedValue(
            lambda value: are_numbers(value, depth=2), "a score for each candidate"
        ),
        "members_": SavedValue(
            lambda value: (
                isinstance(value, list)
                and len(value) == 1
                and isinstance(value[0], ComparisonMethod)
            ),
            "a list of one method for pairs",
        ),
        "reason_": SavedValue(lambda value: isinstance(value, str), "a sentence"),
    }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        names = self.candidates
        if isinstance(names, str) and names == "auto":
            return
        if isinstance(names, str) or not isinstance(names, Sequence) or not names:
            raise ParameterError(
                f"candidates is {names!r}; give auto, or one name or more in a list, such as "
                f"{list(WITHOUT_TIES[:2])}."
            )
        for name in names:
            method = BradleyTerry if name == SIDED else get_method(name)  # refuses unknown names
            if not issubclass(method, ComparisonMethod) or method is AutoPairs:
                raise ParameterError(
                    f"candidates has {name!r}, which is not a single model of pairs; leave it out."
                )

    def _saved_fault(self) -> str:
        member = self.members_[0]
        if name_of(member) != self.chosen_:
            return "members_ are not the chosen method"
        if self.held_out_ and self.chosen_ not in self.held_out_:
            return "held_out_ has no score of chosen_"
        if self.reason_ != reason_of(self.chosen_, self.held_out_, self._alone()):
            return "reason_ is not that of the choice"
        if not member.__sklearn_is_fitted__():
            return "members_ are not fitted"
        sizes = (len(member.workers_), len(member.items_))
        if sizes != (len(self.workers_), len(self.items_)):
            return "members_ do not fit workers_ and items_"
        return ""

    def _alone(self) -> bool:
        """Return whether there is one candidate only."""
        return self.candidates != "auto" and len(self.candidates) == 1

    def _for_refit(self) -> Self:
        """Return an unfitted copy that keeps the choice, for refits to other votes."""
        fitted = self.__sklearn_is_fitted__()
        return type(self)(candidates=[self.chosen_] if fitted else copy.deepcopy(self.candidates))

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem[CrowdPairs, None]) -> Fit:
        data = problem.data
        names = self._names(data)
        part = _sample(data)
        scores = _held_out(names, part) if len(names) > 1 else {}
        chosen = leader(scores) if scores else names[0]
        table = score_table(scores)
        member = made(chosen)
        with stage(chosen):
            result = member._fit(problem)
        member._publish(data, replace(result, findings=()))  # this method reports them
        own = {name: result.extra[name] for name in WORKER_ATTRIBUTES if name in result.extra}
        extra = {
            "chosen": chosen, "held_out": table, "members": [member],
            "reason": reason_of(chosen, table, len(names) == 1), **own,
        }  # fmt: skip
        sampled = () if part is data or not scores else (_sampled(part, data),)
        return replace(result, extra=extra, findings=(*result.findings, *sampled))

    def _fit_pack(self, problem: Problem[Any, None]) -> Fit:
        """Return the fit of Bradley-Terry by shards, and say that nothing was chosen."""
        if self.candidates != "auto" and "bradley-terry" not in self.candidates:
            raise ParameterError(
                f"candidates are {', '.join(self.candidates)}, which need all votes in memory; "
                "leave candidates out, or read the pack into memory."
            )
        result = BradleyTerry()._fit_pack(problem)
        finding = Finding(
            "nothing-chosen", "info", float(problem.data.n_annotations), (),
            "bradley-terry was fitted by shards. Models with ties, with reliabilities of workers "
            "or with a preference for a side were not compared with it, because they need all "
            "votes in memory.",
            "Read the pack into memory, if it fits, to compare them.",
        )  # fmt: skip
        extra = {**result.extra, "chosen": "bradley-terry"}
        return replace(result, extra=extra, findings=(finding, *result.findings))

    def _names(self, data: CrowdPairs) -> tuple[str, ...]:
        """Return the candidates, the preferred one first."""
        if self.candidates != "auto":
            return tuple(
                name if name == SIDED else kebab_case(get_method(name).__name__)
                for name in self.candidates
            )
        ties = bool((data.weights[data.outcome == TIE] > 0).any())
        return WITH_TIES if ties else WITHOUT_TIES

    # --------------------------------------------------------------------------------- predict

    def _outcome_logs(self, data: CrowdPairs) -> Floats:
        logs: Floats = self.members_[0]._outcome_logs(data)
        return logs


def made(name: str) -> ComparisonMethod:
    """Return the unfitted method of a candidate."""
    method: ComparisonMethod = (
        BradleyTerry(side=True) if name == SIDED else cast(Any, get_method(name))()
    )
    return method


def name_of(method: Aggregator) -> str:
    """Return the candidate of a method.

    Examples
    --------
    >>> name_of(BradleyTerry()), name_of(BradleyTerry(side=True))
    ('bradley-terry', 'bradley-terry-side')
    """
    name = kebab_case(type(method).__name__)
    return SIDED if isinstance(method, BradleyTerry) and method.side else name


def reason_of(chosen: str, table: Scores, alone: bool) -> str:
    """Return the sentence that explains the choice.

    Parameters
    ----------
    chosen : str
    table : mapping of name to its scores, the first candidate first
    alone : bool
        Whether there was one candidate only.

    Examples
    --------
    >>> first = {"score": -1.0, "standard_error": 0.02, "lead": 0.0, "lead_error": 0.0}
    >>> other = {"score": -0.9, "standard_error": 0.02, "lead": 0.1, "lead_error": 0.01}
    >>> reason_of("worker-ties", {"davidson": first, "worker-ties": other}, False)
    'worker-ties predicts held-out votes better than davidson: by 0.100 ± 0.010 per vote'
    """
    if alone:
        return f"{chosen} is the only candidate"
    if not table:
        return f"{chosen} is used, because fewer than {N_FOLDS} votes are too few to choose by"
    first = next(iter(table))
    if chosen == first:
        return f"{chosen} is used: no other model leads by more than one standard error"
    found = table[chosen]
    return (
        f"{chosen} predicts held-out votes better than {first}: by {found['lead']:.3f} ± "
        f"{found['lead_error']:.3f} per vote"
    )


def _fit_candidate(name: str, votes: CrowdPairs) -> ComparisonMethod:
    return made(name)._fit_without_checks(votes)


def _held_out(names: Sequence[str], data: CrowdPairs) -> dict[str, HeldOutScore]:
    """Return the held-out scores of the candidates that can be fitted; none with too few votes."""
    scores: dict[str, HeldOutScore] = {}
    if np.count_nonzero(data.weights > 0) < N_FOLDS:
        return scores
    for name in names:
        with stage(name):
            try:
                found = held_out_votes(partial(_fit_candidate, name), data)
            except WisecrowdError:
                if not scores:
                    raise
                continue
        scores[name] = by_worker(found)
    return scores


def _sample(data: CrowdPairs) -> CrowdPairs:
    """Return the votes of some workers, all of theirs, if there are too many votes."""
    if data.n_annotations <= SAMPLE:
        return data
    order = np.random.default_rng(0).permutation(data.n_workers)
    total = np.cumsum(data.labels_per_worker[order])
    n_workers = int(np.searchsorted(total, SAMPLE, side="right"))
    if n_workers < 2:  # few workers with very many votes
        kept = np.zeros(data.n_annotations, dtype=bool)
        kept[np.linspace(0, data.n_annotations - 1, SAMPLE).astype(np.int64)] = True
    else:
        kept = np.isin(data.worker, order[:n_workers])
    return data.select_annotations(kept)


def _sampled(part: CrowdPairs, data: CrowdPairs) -> Finding:
    return Finding(
        "chosen-on-a-sample", "info", part.n_annotations / data.n_annotations, (),
        f"{part.n_annotations} of {data.n_annotations} votes decided which model is fitted to all "
        "votes.",
        "Keep the result; name a method to skip the choice.",
    )  # fmt: skip
