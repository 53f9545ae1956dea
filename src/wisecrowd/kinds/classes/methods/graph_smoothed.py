"""GraphSmoothed: a method whose neighbouring tasks tend to share their class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.parameter_checks import Count, Limits, check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit, dense_rows
from wisecrowd.core.saved_attributes import Saved, SavedValue
from wisecrowd.inference.held_out import paired_difference, scoring_plan
from wisecrowd.kinds.classes.container import LEAST_SHARED, CrowdLabels, labelled_by_several
from wisecrowd.kinds.classes.families.class_prior import check_fixed_class_prior, with_class_prior
from wisecrowd.kinds.classes.families.held_out_labels import held_out_score
from wisecrowd.kinds.classes.families.task_graph import (
    Homophily,
    check_graph,
    edge_strengths,
    homophily,
    task_matrix,
)
from wisecrowd.kinds.classes.families.wrapped_method import WrappedMethod
from wisecrowd.kinds.classes.prior import TaskPrior

LEAST_HOMOPHILY = 0.05  # below, neighbours say nothing about each other
CLEAR = 3.0  # standard errors of the agreement across edges above chance
DAMPING = 0.5  # share of the previous field that is kept
RAMP = 5  # least number of rounds in which the strength grows to its value
STILL = 1e-4  # change of the posterior that counts as none
GRID = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)  # strengths that held-out labels choose from
FEW_PARAMETERS = ("OneCoin", "MajorityVote", "Wawa", "ZeroBasedSkill")  # for one label per task


class Field(NamedTuple):
    """Strengths of all edges, and what is reported about them."""

    strengths: Any  # (n_tasks, n_tasks) sparse; None without any effect
    beta: float  # mean over edges
    homophily: float
    findings: tuple[Finding, ...]


@dataclass(eq=False, repr=False, kw_only=True)
class GraphSmoothed(WrappedMethod):
    r"""Any method for classes, with a prior that neighbouring tasks share their class.

    .. math:: p(z) \propto \prod_i \pi_{z_i} \exp \sum_{(i, i')} \beta_{ii'} 1[z_i = z_{i'}]

    Mean field adds :math:`\sum_{i'} \beta_{ii'} q_{i'}(k)` to the log prior of class k of task i,
    and the method is fitted again with this prior, until nothing changes. The strengths follow
    from the labels: with the agreement â across edges, a₀ by chance and c within tasks,

    .. math:: h = \frac{\hat a - a_0}{c - a_0}, \qquad
        \beta_{ii'} = \frac{\log(1 + K h / (1 - h))}{1 + (d_i + d_{i'}) / 2}.

    Use it when tasks have neighbours: nearest neighbours in a feature space, the same page, the
    next frame. Cost: that of the method, times 15 to 60 rounds.

    Parameters
    ----------
    method : method or its name
        The method; by default Dawid-Skene. Set its own parameters as ``method__tol`` and so on.
    graph : sparse matrix (n_tasks, n_tasks), or (task, neighbour[, weight]) columns of ids
        Edges; both directions count as one. ``nearest_neighbours`` of
        ``wisecrowd.kinds.classes.families.task_graph`` makes them from features. Without a graph
        this is the method itself.
    beta : "auto", "held-out" or float
        Strength of all edges; "auto" estimates it as above, and "held-out" takes the one of
        0, .05, .1, .2, .4 and .8 that predicts hidden labels best, 0 unless another clearly leads.
    class_prior : "auto", "uniform" or (n_classes,) probabilities
        Prior of the classes without labels and neighbours; "auto" leaves it to the method.
    max_rounds : int
        Maximum number of fits of the method.

    Attributes
    ----------
    methods_ : list of one fitted method
        The method in the last round; other attributes are its own.
    beta_, homophily_ : float
        Mean strength of the edges, and h.
    n_rounds_ : int
        Number of fits of the method.

    Notes
    -----
    Too strong a graph makes the field forget the labels. Strengths are therefore divided by the
    degree, grow over the first rounds, and are 0, with a finding, if h is below .05 or
    the agreement across edges is within three standard errors of chance. With one label
    per task c is unknown, and methods with many parameters collapse; then only one-coin workers and
    votes are smoothed. A classifier on the same features, given as ``task_prior``, is often the
    stronger alternative: compare them.

    With a graph, a method that estimates class frequencies by default takes them as equal, as with
    any ``task_prior``: the neighbours say more. New tasks in ``predict`` have no neighbours.

    References
    ----------
    J. Besag (1986). On the statistical analysis of dirty pictures. J. R. Statist. Soc. B 48.

    Examples
    --------
    >>> labels = (["t1", "t1", "t2", "t2"], ["u", "v", "u", "v"], [0, 0, 0, 1])  # t2 is a tie
    >>> near = (["t2"], ["t1"])
    >>> GraphSmoothed("majority-vote", graph=near, beta=2.0).fit(labels).probas_[1].round(1)
    array([0.9, 0.1])
    """

    graph: Any = None
    beta: Any = "auto"
    class_prior: Any = "auto"
    max_rounds: int = 60

    promises: ClassVar[Tags] = Tags()
    footprint: ClassVar[Footprint | None] = Footprint(cell=63.4)
    saves: ClassVar[dict[str, Saved]] = {
        "methods_": SavedValue(
            lambda value: (
                isinstance(value, list) and len(value) == 1 and isinstance(value[0], Aggregator)
            ),
            "a list of one method",
        ),
        "beta_": SavedValue(lambda value: isinstance(value, float) and value >= 0, "a strength"),
        "homophily_": SavedValue(
            lambda value: isinstance(value, float) and 0 <= value <= 1, "a share"
        ),
        "n_rounds_": SavedValue(lambda value: isinstance(value, int) and value > 0, "a count"),
    }

    limits: ClassVar[Limits] = {
        "graph": check_graph,
        "class_prior": check_fixed_class_prior,
        "max_rounds": Count(1, 1000),
    }

    def tags(self) -> Tags:
        """Return the method's tags, without those that a graph does not preserve."""
        inside = self.method.tags() if isinstance(self.method, Aggregator) else self.promises
        inside = replace(inside, online=False, shardable=False)
        if self.graph is None:
            return inside
        able = inside.inductive or inside.predicts
        return replace(inside, monotone=False, inductive=False, predicts=able, pooled=True)

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        if isinstance(self.beta, str):
            if self.beta not in ("auto", "held-out"):
                raise ParameterError(
                    f'beta is {self.beta!r}; give "auto", "held-out" or a number from 0 up.'
                )
        else:
            check_number("beta", self.beta, 0.0, 1e6)

    def _saved_attributes(self) -> dict[str, Saved]:
        inside: dict[str, Saved] = self.method._saved_attributes()
        return inside | super()._saved_attributes()

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        found: dict[str, int] = self.methods_[0]._axis_sizes(sizes)
        return found

    def _saved_fault(self) -> str:
        fitted = self.methods_[0]
        if type(fitted) is not type(self.method) or not fitted.__sklearn_is_fitted__():
            return "methods_ are not those of the parameter method"
        if (len(fitted.workers_), len(fitted.classes_)) != (len(self.workers_), len(self.classes_)):
            return "methods_ do not fit workers_ and classes_"
        return ""

    # ---------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
        problem = with_class_prior(problem, self.class_prior)
        fitted, result = self._fit_one(problem)
        field = self._field(problem)
        n_rounds = 1
        if field.strengths is not None:
            fitted, result, n_rounds = self._smoothed(problem, field.strengths, result)
        extra = {
            "methods": [fitted], "beta": field.beta, "homophily": field.homophily,
            "n_rounds": n_rounds,
        }  # fmt: skip
        findings = (*result.findings, *field.findings)
        return replace(result, findings=findings, extra={**result.extra, **extra})

    def _smoothed(
        self, problem: Problem, strengths: Any, first: Fit
    ) -> tuple[Aggregator, Fit, int]:
        """Fit the method with the field of the neighbours, until the posterior is still."""
        n = problem.data.n_tasks
        prior = problem.prior.dense(n)
        q = dense_rows(first.probas)
        field = np.zeros_like(q)
        # All tasks are updated at once. The field of a task grows by about one logit per round,
        # because strongly coupled tasks would exchange their classes back and forth.
        largest = float(np.asarray(strengths.sum(axis=1)).max())
        ramp = max(RAMP, min(int(np.ceil(largest)), self.max_rounds // 2))
        for n_rounds in range(2, max(self.max_rounds, 2) + 1):
            grown = min(1.0, (n_rounds - 1) / ramp)
            field = DAMPING * field + (1 - DAMPING) * grown * (strengths @ q)
            # Adding a constant to a row changes nothing; without it the rows stay at most 0.
            rows = prior + field - field.max(axis=1, keepdims=True)
            index = np.arange(n, dtype=np.int32)
            # Class frequencies are in the field already, so the method must not estimate them too.
            shifted = TaskPrior(rows, index, given=True, gold=problem.prior.gold)
            fitted, result = self._fit_one(replace(problem, prior=shifted, start=q))
            change = float(np.abs(dense_rows(result.probas) - q).max())
            q = dense_rows(result.probas)
            if change < STILL and grown == 1.0:
                break
        return fitted, result, n_rounds

    def _field(self, problem: Problem) -> Field:
        """Return the strengths of the edges, or none with the reason as a finding."""
        labels = problem.data
        if self.graph is None or labels.n_classes < 2:
            return Field(None, 0.0, 0.0, ())
        matrix, n_unknown = task_matrix(self.graph, labels)
        findings = _unknown_tasks(n_unknown)
        found = homophily(labels, matrix)
        if not matrix.nnz:
            no_edges = Finding(
                "no-edges", "medium", 0.0, (), "The graph has no edge between two of these tasks.",
                "Check that the graph has the ids of the labels.",
            )  # fmt: skip
            return Field(None, 0.0, found.value, (*findings, no_edges))
        if not isinstance(self.beta, str):
            strength = float(self.beta)
            strengths = matrix * strength if strength > 0 else None
            return Field(strengths, strength, found.value, findings)
        if self.beta == "held-out":
            strength = self._chosen_strength(labels)
            strengths = matrix * strength if strength > 0 else None
            return Field(strengths, strength, found.value, findings)
        refused = self._refused(labels, found)
        if refused is not None:
            return Field(None, 0.0, found.value, (*findings, refused))
        strengths = edge_strengths(matrix, labels.n_classes, found.value)
        return Field(strengths, float(strengths.data.mean()), found.value, findings)

    def _refused(self, labels: CrowdLabels, found: Homophily) -> Finding | None:
        """Return why the graph is not used, if it is not."""
        noise = CLEAR * found.error
        if found.value < LEAST_HOMOPHILY or found.across - found.chance < noise:
            return Finding(
                "no-homophily", "medium", found.value, (),
                f"The graph is not used: labels of neighbours hardly agree beyond chance "
                f"({found.across:.3f} against {found.chance:.3f} ± {noise:.3f}; homophily "
                f"{found.value:.2f}, which is the score, and {LEAST_HOMOPHILY} is needed).",
                "Check that the edges are between similar tasks.",
            )  # fmt: skip
        several = labelled_by_several(labels).mean()
        if several < LEAST_SHARED and type(self.method).__name__ not in FEW_PARAMETERS:
            return Finding(
                "one-label-per-task", "medium", float(several), (),
                f"The graph is not used: {several:.0%} of the tasks have labels of two workers, "
                "which is the score, and a method with many parameters would follow the neighbours "
                "to one class.",
                f"Use {parameter('method', 'one-coin')}, or give the strength as beta.",
            )  # fmt: skip
        return None

    def _chosen_strength(self, labels: CrowdLabels) -> float:
        """Return the strength that predicts hidden labels best; 0 unless another clearly leads."""
        plan = scoring_plan(labels)

        def probas_at(strength: float) -> Any:
            given = {**self.get_params(deep=False), "method": self._fresh_method()}
            one = type(self)(**{**given, "beta": strength})
            return lambda visible: one._fit_without_checks(visible).probas_

        try:
            scores = {strength: held_out_score(probas_at(strength), plan) for strength in GRID}
        except DataError:  # every task has one label: nothing can be hidden
            return 0.0
        best = max(GRID, key=lambda strength: scores[strength].mean)
        lead, error = paired_difference(scores[best], scores[0.0])
        return best if lead > error else 0.0

    def _findings(self, problem: Problem, result: Fit, gold: Any) -> list[Finding]:
        # Neighbours may overrule the labels of a task, as a task prior may.
        if result.extra["beta"] > 0:
            problem = replace(problem, prior=replace(problem.prior, given=True))
        return super()._findings(problem, result, gold)

    # ------------------------------------------------------------------------------------ predict

    def _predict(self, problem: Problem) -> Any:
        return self.methods_[0]._predict(with_class_prior(problem, self.class_prior))

    def _log_likelihood(self, problem: Problem) -> float:
        fitted: Aggregator = self.methods_[0]
        return fitted._log_likelihood(with_class_prior(problem, self.class_prior))

    def label_law(self) -> Any:
        """Return the label law of the method in the last round."""
        return self.methods_[0].label_law()


def _unknown_tasks(n_unknown: int) -> tuple[Finding, ...]:
    if not n_unknown:
        return ()
    return (Finding(
        "unknown-neighbours", "low", float(n_unknown), (),
        f"{n_unknown} edges of the graph name tasks without labels and do not count.",
        "Check that the graph has the ids of the labels.",
    ),)  # fmt: skip
