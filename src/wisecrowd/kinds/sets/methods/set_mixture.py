r"""Mixture of prototypes of sets, seen by workers with a sensitivity and false alarms per class.

.. math::
    P(z) = \sum_t \rho_t \prod_k \beta_{tk}^{z_k} (1 - \beta_{tk})^{1 - z_k}, \qquad
    P(k \in Y_j \mid z) = s_{jk} z_k + f_{jk} (1 - z_k)

with :math:`s_{jk} \sim Beta(\kappa \bar s_k, \kappa (1 - \bar s_k))` and :math:`f` likewise. The
rates of workers are averaged over (variational Bayes), the pooled rates, prototypes and their
weights maximised. With one prototype the classes are independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.result import TIE, Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats, Mask
from wisecrowd.inference.dirichlet import divergence, expected_log
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kinds.sets.answers import SetAnswers
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.methods.base import (
    LEAST_RATE,
    RateCounts,
    SetMethod,
    SetProblem,
    Ticks,
    WorkerSets,
)
from wisecrowd.kinds.sets.methods.label_rules import LabelRules, evidence_gain, rising
from wisecrowd.kinds.sets.truth import SetPrior

POOLED = 100.0  # pseudo-labels of the rates of all classes in those of each class
PROTOTYPE = 0.5  # pseudo-tasks with the shares of classes, in every prototype
LEAST_DOUBT = 1e-6  # of the model's probabilities, beyond which rounding would show
SURE = 1e5  # log-odds of known classes
DEPENDENCE = 0.3  # between the sets of a task, in probabilities of answers
# Share of the smoothed votes in probabilities of answers, by the number of sets of a task.
SETS, VOTES_COUNT = (0.0, 1.0, 2.0), (0.0, 0.5, 0.25)


class SetParams(NamedTuple):
    """Estimated parameters.

    Attributes
    ----------
    rates : (2, n_workers, n_classes)
        Expected sensitivity and false alarms.
    pooled : (2, n_classes)
        Those of an unknown worker.
    prototypes : (n_prototypes, n_classes)
        Probability of each class, given that the class it implies is in the set.
    weights : (n_prototypes,)
    """

    rates: Floats
    pooled: Floats
    prototypes: Floats
    weights: Floats


class SetPosterior(NamedTuple):
    """Probabilities of classes (n_tasks, n_classes) and prototypes, and the log-evidence.

    ``by_prototype`` (n_prototypes, n_tasks, n_classes) is given the prototype.
    """

    probas: Floats
    share: Floats
    by_prototype: Floats
    log_evidence: float


class SetRun(NamedTuple):
    """Result of the iterations."""

    params: SetParams
    posterior: SetPosterior
    n_iter: int
    converged: bool
    history: tuple[float, ...]

    @property
    def probas(self) -> Floats:
        """(n_tasks, n_classes) probabilities of classes."""
        return self.posterior.probas


@dataclass(frozen=True, eq=False)
class SetMixture:
    """Model of sets, with known sets and the prior of tasks.

    Attributes
    ----------
    data : CrowdSets
    prior : SetPrior
        With probabilities of classes, these replace the prototypes.
    rules : LabelRules
    shrinkage : float
        Pseudo-labels of the pooled rates in those of each worker.
    """

    data: CrowdSets
    prior: SetPrior
    rules: LabelRules
    shrinkage: float

    @cached_property
    def ticks(self) -> Ticks:
        """The sets as sparse tables."""
        return Ticks(self.data)

    @cached_property
    def known(self) -> Mask:
        """(n_tasks,) tasks whose set is known."""
        given = self.prior.known
        return np.zeros(self.data.n_tasks, dtype=bool) if given is None else given

    @cached_property
    def start(self) -> Floats:
        """(n_tasks, n_classes) shares of the votes; known sets are certain."""
        total = self.data.total_weight[:, None]
        shares = self.data.votes / np.maximum(total, LEAST_RATE)
        overall = shares[total[:, 0] > 0].mean(axis=0)
        shares = self.rules.closed(np.where(total > 0, shares, overall))
        if self.prior.members is not None:
            shares[self.known] = self.prior.members[self.known]
        return shares

    @cached_property
    def counted(self) -> Floats:
        """(n_tasks,) 1 for tasks that have sets or are known: the others teach nothing."""
        return ((self.data.total_weight > 0) | self.known).astype(np.float64)

    @cached_property
    def pseudo(self) -> Floats:
        """(n_classes,) shares of the votes, given those of the parents."""
        share = self.counted @ self.start
        found = self.rules.conditional(share, self.counted.sum(), np.full(len(share), 0.5), 1.0)
        for level in self.rules.levels:
            total = level.sums(found)[level.place]
            found[level.members] /= np.maximum(1.0, total / 0.9)
        return found

    # -------------------------------------------------------------------------------- iterations

    def run(self, n_prototypes: int, max_iter: int, tol: float) -> SetRun:
        """Alternate between parameters and posterior, from the shares of the votes."""
        history: list[float] = []
        overall = self.ticks.counts(self.start).overall()
        old = self._first(n_prototypes)
        pooled = np.repeat(overall[:, None], self.data.n_classes, axis=1)
        for iteration in range(1, max_iter + 1):
            counts = self.ticks.counts(old.probas)
            pooled = self._pooled(counts, pooled, overall)
            alpha = np.stack(self._beta(counts, pooled), axis=-1)
            prototypes, weights = self._prototypes(old)
            logs = expected_log(alpha)
            new = self.posterior(logs[..., 0], logs[..., 1], prototypes, weights)
            penalty = self._penalty(alpha, logs, pooled, overall, prototypes, weights)
            history.append(new.log_evidence - penalty)
            moved = float(np.abs(new.probas - old.probas).max(initial=0.0))
            report(Progress(iteration, max_iter, history[-1]))
            old = new
            if moved < tol:
                break
        rates = np.clip(alpha[..., 0] / alpha.sum(axis=-1), LEAST_RATE, 1 - LEAST_RATE)
        params = SetParams(rates, pooled, prototypes, weights)
        return SetRun(params, old, iteration, moved < tol, tuple(history))

    def posterior(
        self, log_in: Floats, log_out: Floats, prototypes: Floats, weights: Floats
    ) -> SetPosterior:
        """Return the exact posterior of the sets, given logarithms of rates and complements."""
        absent, gain = self.ticks.evidence(log_in, log_out)
        certain = 0.0
        if self.prior.probas is not None:
            p = self.prior.probas
            gain = gain + np.log(p) - np.log1p(-p)
            certain -= float((np.log1p(-p) - np.log(0.5)).sum())
        if self.prior.members is not None:
            sign = np.where(self.prior.members, SURE, -SURE)
            gain = gain + np.where(self.known[:, None], sign, 0.0)
            certain += SURE * int(self.prior.members[self.known].sum())
        parts = [self.rules.posterior(gain, one) for one in prototypes]
        score = np.stack([total for total, _ in parts], axis=1) + np.log(weights)
        whole = np.logaddexp.reduce(score, axis=1)
        share = np.exp(score - whole[:, None])
        by_prototype = np.stack([one for _, one in parts])
        probas = np.einsum("it,tik->ik", share, by_prototype)
        evidence = float(whole.sum() + absent.sum()) - certain
        return SetPosterior(np.clip(probas, 0.0, 1.0), share, by_prototype, evidence)

    def _first(self, n_prototypes: int) -> SetPosterior:
        share = np.ones((self.data.n_tasks, 1))
        if n_prototypes > 1:
            share = split_tasks(self.start, self.counted, n_prototypes)
        every = np.broadcast_to(self.start, (n_prototypes, *self.start.shape))
        return SetPosterior(self.start, share, every, 0.0)

    # ----------------------------------------------------------------------------------- updates

    def _beta(self, counts: RateCounts, pooled: Floats) -> tuple[Floats, Floats]:
        own = self.shrinkage * pooled[:, None]
        rest = self.shrinkage - own
        return counts.ticked + own, counts.seen - counts.ticked + rest

    def _pooled(self, counts: RateCounts, pooled: Floats, overall: Floats) -> Floats:
        """Raise the evidence of the pooled rates, by a step of Minka's fixed-point iteration."""
        from scipy.special import psi

        base = POOLED * overall[:, None]
        own = self.shrinkage * pooled
        rest = self.shrinkage - own
        ticked, missed = self._beta(counts, pooled)
        yes = own * (psi(ticked) - psi(own)[:, None]).sum(axis=1) + base
        no = rest * (psi(missed) - psi(rest)[:, None]).sum(axis=1) + POOLED - base
        return np.asarray(np.clip(yes / (yes + no), LEAST_RATE, 1 - LEAST_RATE))

    def _prototypes(self, old: SetPosterior) -> tuple[Floats, Floats]:
        """Return prototypes and weights; known probabilities of tasks replace them."""
        if self.prior.probas is not None:
            return np.full((1, self.data.n_classes), 0.5), np.ones(1)
        share = old.share * self.counted[:, None]
        total, n = share.sum(axis=0), share.shape[1]
        counts = np.einsum("it,tik->tk", share, old.by_prototype)
        found = self.rules.conditional(counts, total, self.pseudo, PROTOTYPE)
        return found, (total + PROTOTYPE / n) / (self.counted.sum() + PROTOTYPE)

    def _penalty(
        self, alpha: Floats, logs: Floats, pooled: Floats, overall: Floats,
        prototypes: Floats, weights: Floats,
    ) -> float:  # fmt: skip
        """Return what the objective loses by the distance of the parameters from their priors."""
        prior = self.shrinkage * np.stack([pooled, 1 - pooled], axis=-1)[:, None]
        total = divergence(alpha, np.broadcast_to(prior, alpha.shape), logs)
        base = overall[:, None]
        total -= POOLED * float((base * np.log(pooled) + (1 - base) * np.log1p(-pooled)).sum())
        if self.prior.probas is None:
            total -= PROTOTYPE * float(np.log(weights).mean())
            for one in prototypes:
                total -= self.rules.log_prior(one, self.pseudo, PROTOTYPE)
        return total

    def integrated_bound(self, run: SetRun) -> float:
        """Return the bound of the log-evidence with prototypes and weights integrated over.

        The bound of a run has them at their best values, which more prototypes always improve.
        """
        params, found = run.params, run.posterior
        share = found.share * self.counted[:, None]
        total = share.sum(axis=0)
        counts = np.einsum("it,tik->tk", share, found.by_prototype)
        gain = evidence_gain(total, np.full(len(total), PROTOTYPE / len(total)), params.weights)
        gain -= rising(total.sum(keepdims=True), np.full(1, PROTOTYPE))
        for own, size, chance in zip(counts, total, params.prototypes, strict=True):
            gain += self.rules.integration_gain(own, float(size), chance, self.pseudo, PROTOTYPE)
        return run.history[-1] + gain

    # ----------------------------------------------------------------------------------- answers

    def careful(self, params: SetParams) -> Floats:
        """Return probabilities of answers, which are less extreme than the model's."""
        usual = 0.5 if self.prior.probas is None else self.prior.probas
        found = self.under(params).probas
        return humbled(found, self.data, self.rules, self.known, usual)

    def log_likelihood(self, params: SetParams) -> float:
        """Return the log-likelihood of the sets under expected rates."""
        return self.under(params).log_evidence

    def under(self, params: SetParams) -> SetPosterior:
        """Return the posterior under expected rates; unknown workers have the pooled ones."""
        rates = np.concatenate([params.rates, params.pooled[:, None]], axis=1)
        rates = rates[:, : self.data.n_workers]
        return self.posterior(np.log(rates), np.log1p(-rates), params.prototypes, params.weights)


def humbled(
    probas: Floats, data: CrowdSets, rules: LabelRules, known: Mask | None = None,
    usual: float | Floats = 0.5,
) -> Floats:  # fmt: skip
    r"""Return less extreme probabilities of answers: three quarters model, one quarter votes.

    .. math::
        p_{ik} = \tfrac34 \tilde p_{ik} + \tfrac14 \frac{v_{ik} + 2 u_{ik}}{n_i + 2}

    with the tempered probability of the model, :math:`v` of :math:`n` sets with the class, and its
    usual probability :math:`u`. A task of one set has one half of each, and a task without sets
    only the model. Votes never change an answer at the threshold 1/2; where they would, the
    probability stays on the model's side of it.

    Parameters
    ----------
    probas : (n_tasks, n_classes)
        Those of the model.
    data : CrowdSets
    rules : LabelRules
        The result obeys them.
    known : (n_tasks,) bool, optional
        Tasks whose probabilities stay as they are.
    usual : float or (n_tasks, n_classes)
        Those of the task prior.
    """
    model = rules.coherent(tempered(probas, data))
    n = data.total_weight[:, None]
    votes = rules.closed((data.votes + 2 * usual) / (n + 2))
    share = np.interp(n, SETS, VOTES_COUNT)
    found = (1 - share) * model + share * votes
    outside = np.minimum(found, 0.5 - LEAST_DOUBT)
    found = rules.coherent(np.where(model >= 0.5 - TIE, np.maximum(found, 0.5), outside))
    return found if known is None else np.where(known[:, None], probas, found)


def tempered(probas: Floats, data: CrowdSets) -> Floats:
    """Return less extreme probabilities: n dependent sets count as n / (1 + 0.3 (n - 1))."""
    heat = 1 + DEPENDENCE * np.maximum(data.total_weight - 1, 0.0)
    p = np.clip(probas, LEAST_DOUBT, 1 - LEAST_DOUBT)
    odds = (np.log(p) - np.log1p(-p)) / heat[:, None]
    return np.asarray(1 / (1 + np.exp(-odds)))


def split_tasks(shares: Floats, counted: Floats, n_prototypes: int) -> Floats:
    """Return (n_tasks, n_prototypes) soft groups of tasks with similar shares of classes.

    The group with the largest variance along a direction is split along it, until there are enough.
    After each split, a few steps of EM for Bernoulli mixtures follow. There are no random numbers,
    and the order of tasks and classes does not matter.
    """
    group, rows = counted[:, None], counted[:, None]
    overall = (counted @ shares + 0.5) / (counted.sum() + 1)
    while group.shape[1] < n_prototypes:
        widest: tuple[float, int, Floats] | None = None
        for t in range(group.shape[1]):
            own = group[:, t]
            away = shares - own @ shares / max(float(own.sum()), LEAST_RATE)
            values, vectors = np.linalg.eigh((away * own[:, None]).T @ away)
            if widest is None or values[-1] > widest[0] * (1 + 1e-9):
                spread = np.sqrt(max(float(values[-1]), 0.0) / max(float(own.sum()), LEAST_RATE))
                widest = float(values[-1]), t, away @ vectors[:, -1] / (spread + LEAST_RATE)
        assert widest is not None
        _, chosen, place = widest
        upper = 1 / (1 + np.exp(-np.clip(4 * place, -30, 30)))
        own = group[:, chosen]
        group = np.column_stack([np.delete(group, chosen, 1), own * upper, own * (1 - upper)])
        for _ in range(10):
            mean = (group.T @ shares + 0.5 * overall) / (group.sum(axis=0)[:, None] + 0.5)
            mean = np.clip(mean, 0.01, 0.99)
            score = np.log(np.maximum(group.sum(axis=0), LEAST_RATE))
            score = score + shares @ np.log(mean).T + (1 - shares) @ np.log1p(-mean).T
            group = rows * np.exp(score - np.logaddexp.reduce(score, axis=1)[:, None])
    return np.where(rows > 0, group, 1 / n_prototypes)


@dataclass(eq=False, repr=False, kw_only=True)
class MixtureMethod(SetMethod):
    """Base of the methods with prototypes; a method may have more than one."""

    shrinkage: float = 5.0
    max_iter: int = 200
    tol: float = 1e-4

    promises: ClassVar[Tags] = Tags(monotone=True, likelihood=True)
    footprint: ClassVar[Footprint | None] = Footprint(cell=120.0)
    saves: ClassVar[dict[str, Saved]] = {
        "sensitivity_": SavedArray("J K", "probability"),
        "false_alarm_": SavedArray("J K", "probability"),
        "pooled_sensitivity_": SavedArray("K", "probability"),
        "pooled_false_alarm_": SavedArray("K", "probability"),
        "prototypes_": SavedArray("* K", "probability"),
        "prototype_weights_": SavedArray("*", "distribution"),
    }

    limits: ClassVar[Limits] = {"shrinkage": Number(0.01, 1000000.0)}

    def _saved_fault(self) -> str:
        same = len(self.prototypes_) == len(self.prototype_weights_) > 0
        return "" if same else "prototypes_ do not fit prototype_weights_"

    def _rules(self, problem: SetProblem) -> LabelRules:
        return LabelRules.none(problem.data.n_classes)

    def _run(self, model: SetMixture) -> SetRun:
        return model.run(1, self.max_iter, self.tol)

    def _model(self, problem: SetProblem) -> SetMixture:
        rules, prior, data = self._rules(problem), problem.prior, problem.data
        if prior.known is not None and prior.members is not None:
            known = prior.known
            rules.require_allowed(prior.members[known], data.tasks[known], data.classes)
        return SetMixture(data, prior, rules, float(self.shrinkage))

    def _fit(self, problem: SetProblem) -> Fit:
        model = self._model(problem)
        model.rules.require_support(problem.data)
        run = self._run(model)
        answers = self._answers(model.careful(run.params), model.rules)
        worth = WorkerSets.of(problem.data, run.probas)
        params = run.params
        order = np.argsort(-params.weights, kind="stable")
        return Fit(
            answers,
            worth.accuracy,
            worth.error,
            n_iter=run.n_iter,
            converged=run.converged,
            history=run.history,
            extra={
                "sensitivity": params.rates[0],
                "false_alarm": params.rates[1],
                "pooled_sensitivity": params.pooled[0],
                "pooled_false_alarm": params.pooled[1],
                "prototypes": params.prototypes[order],
                "prototype_weights": params.weights[order],
                **worth.published(),
            },
        )

    def _fitted(self) -> SetParams:
        return SetParams(
            np.stack([self.sensitivity_, self.false_alarm_]),
            np.stack([self.pooled_sensitivity_, self.pooled_false_alarm_]),
            self.prototypes_,
            self.prototype_weights_,
        )

    def _predict(self, problem: SetProblem) -> SetAnswers:
        model = self._model(problem)
        return self._answers(model.careful(self._fitted()), model.rules)

    def _log_likelihood(self, problem: SetProblem) -> float:
        return self._model(problem).log_likelihood(self._fitted())
