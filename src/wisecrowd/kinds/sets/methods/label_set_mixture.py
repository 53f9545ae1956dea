"""LabelSetMixture: prototypes of sets, with exclusive groups and classes that imply others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Count, Limits, is_auto
from wisecrowd.kinds.sets.methods.base import SetProblem
from wisecrowd.kinds.sets.methods.label_rules import LabelRules, check_rules
from wisecrowd.kinds.sets.methods.set_mixture import MixtureMethod, SetMixture, SetRun

NUMBERS = (2, 4, 8, 16)  # of prototypes, tried in this order after one
FEWEST_TASKS = 5  # per prototype


@dataclass(eq=False, repr=False, kw_only=True)
class LabelSetMixture(MixtureMethod):
    r"""Sets follow prototypes, so that classes tell something about each other.

    .. math::
        P(z) = \sum_t \rho_t \prod_k \beta_{tk}^{z_k} (1 - \beta_{tk})^{1 - z_k}, \qquad
        P(k \in Y_{ij} \mid z_i) = s_{jk} z_{ik} + f_{jk} (1 - z_{ik})

    A task belongs to one of several prototypes, each with its own probability of every class.
    Workers have rates as in :class:`SharedTwoCoin`, which is the case of one prototype. The sums
    over all sets are exact.

    Use it when classes occur together or instead of each other and a task has few labels, or when
    rules say which sets are possible. Cost per iteration: O((annotations + tasks × prototypes) ×
    classes), and one fit for each number of prototypes that is tried. Memory: prototypes × tasks ×
    classes.

    Parameters
    ----------
    n_prototypes : int or "auto"
        "auto" doubles the number as long as the lower bound of the log-evidence, with prototypes
        integrated over, rises, and as there are five tasks for each.
    exclusive : list of groups of classes, optional
        At most one class of each group is in a set.
    implies : mapping of class to class, optional
        The first class is only in sets with the second, as in a hierarchy.
    threshold : float or "cardinality"
        A class is in the set if it is at least this probable. "cardinality" takes as many classes
        as the probabilities sum to.
    shrinkage : float
        Number of labels that the pooled rates count for in those of a worker.
    max_iter : int
    tol : float
        The iterations stop when no probability of a class changes by more.

    Attributes
    ----------
    labels_ : (n_tasks,) str
        The classes of each task, with ``|`` between them.
    probas_ : (n_tasks, n_classes)
        Probability of every class; rows do not sum to one. They are less extreme than the model's,
        as those of SharedTwoCoin.
    members_ : (n_tasks, n_classes) bool
        The classes of each task as a table.
    prototypes_ : (n_prototypes, n_classes)
        Probability of every class in each prototype, given that the class it implies is in the set;
        the most common prototype first.
    prototype_weights_ : (n_prototypes,)
        Shares of the prototypes.
    sensitivity_, false_alarm_ : (n_workers, n_classes)
        Expected rates of each worker.
    pooled_sensitivity_, pooled_false_alarm_ : (n_classes,)
        Those of a worker about whom nothing is known.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Expected share of right decisions about single classes.
    worker_sensitivity_, worker_false_alarm_ : (n_workers,)
        Expected rates over all classes together.
    set_size_, crowd_set_size_ : (n_workers,)
        Mean size of the worker's sets, and of the sets of others on the same tasks.
    history_ : tuple of float
        Lower bound of the log-evidence in every iteration.

    Notes
    -----
    Prototypes start from groups of tasks, split along the directions in which the votes differ
    most, so there are no random numbers. Each prototype counts the shares of the votes as half a
    task. A class may imply one other class at most, and a group holds classes that imply the same
    class or none. Probabilities that are made less extreme are put in line with the rules again:
    no class exceeds the one it implies, and a group sums to one at most.

    References
    ----------
    P. F. Lazarsfeld and N. W. Henry (1968). Latent structure analysis. Houghton Mifflin, for
    mixtures of product-Bernoulli prototypes.

    L. Duan, S. Oyama, H. Sato and M. Kurihara (2014). Separate or joint? Estimation of multiple
    labels from crowdsourced annotations. Expert Systems with Applications 41, 5723-5732.

    Examples
    --------
    >>> sets = ["cat|pet", "cat", "pet", "car", "car|pet", "car"]
    >>> task, worker = [1, 1, 1, 2, 2, 2], ["ann", "bob", "cem"] * 2
    >>> model = LabelSetMixture(implies={"cat": "pet"}, exclusive=[["car", "pet"]])
    >>> model.fit((task, worker, sets)).labels_.tolist()
    ['cat|pet', 'car']
    """

    n_prototypes: Any = "auto"
    exclusive: Any = None
    implies: Any = None

    footprint = Footprint(cell=400.0)
    limits: ClassVar[Limits] = {"n_prototypes": Count(1, 1000, auto=True)}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_rules(self.exclusive, self.implies)

    def _rules(self, problem: SetProblem) -> LabelRules:
        if problem.prior.probas is not None:
            raise ParameterError(
                "LabelSetMixture learns which sets are common and takes no task prior; leave it "
                "out, or use SharedTwoCoin."
            )
        return LabelRules.of(problem.data.classes, self.exclusive, self.implies)

    def _run(self, model: SetMixture) -> SetRun:
        """Fit as many prototypes as given, or double them as long as the bound rises."""
        if not is_auto(self.n_prototypes):
            return model.run(int(self.n_prototypes), self.max_iter, self.tol)
        best = super()._run(model)
        bound = model.integrated_bound(best)
        for number in NUMBERS:
            if model.counted.sum() < FEWEST_TASKS * number:
                break
            more = model.run(number, self.max_iter, self.tol)
            reached = model.integrated_bound(more)
            if not reached > bound:
                break
            best, bound = more, reached
        return best
