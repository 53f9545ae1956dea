"""The default learner: labels of held-out tasks choose among a few learners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.exceptions import MissingDependencyError, ParameterError
from wisecrowd.core.features import is_dataset
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import as_generator, is_auto
from wisecrowd.core.registry import get_method, kebab_case
from wisecrowd.core.saved_attributes import Saved, SavedValue
from wisecrowd.core.types import Floats
from wisecrowd.inference.held_out import are_numbers, leader, paired_difference, score_table
from wisecrowd.inference.monitor import stage
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning.training.crowd_classifier import CrowdClassifier, Learned, Training
from wisecrowd.learning.training.held_out_scoring import HeldOutTasks, TaskFolds, held_out_tasks

# Learners to choose from, the preferred one first.
VECTORS = ("crowd-kernel", "raykar", "vote-regression")
LARGE_INPUTS = ("maxmig", "vote-regression")
FREQUENCIES = "hierarchical-dawid-skene"  # method that estimates class frequencies from labels
FLAT_VOTES = 0.1  # excess entropy of the votes, in units of log K, that makes them too flat
MOST_FEATURES = 5000  # numbers per task; above, a network is preferred to a kernel
MIN_LEAD = 2.0  # standard errors by which another learner must lead the preferred one
LEAST_TASKS = 30  # tasks with labels; with fewer, held-out scores are noise
DISAGREE = 0.1  # share of tasks on which learners of equal scores may differ without a finding
N_AFFECTED = 20  # tasks named in a finding


@dataclass(eq=False, repr=False, kw_only=True)
class Auto(CrowdClassifier):
    r"""The learner that predicts labels of held-out tasks best, with a preference for the first.

    .. math::
        \text{score} = \frac1E \sum_{ij} \log \sum_k f_k^{-i}(x_i)\, \hat\theta_j^{-i}[k, y_{ij}]

    :math:`f^{-i}` is a classifier that was trained without task :math:`i`. The confusion matrices
    :math:`\hat\theta^{-i}` are estimated from such predictions, by the same rule for all learners.

    Use it when you do not know which learner suits your data. For vectors of up to 5000 numbers the
    candidates are CrowdKernel, Raykar and VoteRegression, which need no torch. For larger inputs
    they are MaxMIG and VoteRegression; a torch Dataset is left to MaxMIG. The first candidate is
    kept unless another one leads by more than two standard errors. Cost: six fits of each candidate
    up to 2000 tasks with labels, and two above.

    Parameters
    ----------
    candidates : "auto", or a list of names or learners
        Learners to choose from, the preferred one first. With one learner nothing is chosen.
    random_state : int
        Seed of the folds and of the learners that are given by name.

    Attributes
    ----------
    chosen_ : str
        Name of the chosen learner, with the parameters that are not its defaults.
    model_ : fitted learner
        The chosen learner, fitted to all tasks. Predictions are its predictions.
    scores_ : dict of name to {"score", "standard_error", "lead", "lead_error"}
        Mean log-probability of held-out labels and its standard error over tasks. ``lead`` is the
        difference to the first candidate, with the standard error of this difference.
    reason_ : str
        Sentence that explains the choice.
    confusion_, worker_accuracy_, history_, n_iter_
        Those of the chosen learner.

    Notes
    -----
    CrowdKernel aligns its predictions with the votes. If HierarchicalDawidSkene estimates class
    frequencies from the labels that are much more skewed than the votes, CrowdKernel gets these
    frequencies as its ``class_prior``: the entropy of the votes must exceed theirs by a tenth of
    that of equal classes.

    The score measures how well features predict what workers say. It cannot see where a crowd is
    wrong together: on defendants' recidivism (COMPAS) a kernel predicts the workers better than
    logistic regression on vote shares does, and the truth worse.

    References
    ----------
    Stone (1974). Cross-validatory choice and assessment of statistical predictions. JRSS B 36(2),
    111-147.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 0]], 30, axis=0)
    >>> model = Auto().fit(X, votes)
    >>> model.chosen_, model.predict(np.eye(2))
    ('crowd-kernel', array([0, 1]))
    """

    candidates: Any = "auto"

    uses_unlabelled: ClassVar[bool] = True  # the chosen learner reports rows without labels itself
    saves: ClassVar[dict[str, Saved]] = {
        "chosen_": SavedValue(lambda value: isinstance(value, str), "a name"),
        "model_": SavedValue(lambda value: isinstance(value, CrowdClassifier), "a learner"),
        "scores_": SavedValue(
            lambda value: are_numbers(value, depth=2), "a score for each candidate"
        ),
        "reason_": SavedValue(lambda value: isinstance(value, str), "a sentence"),
    }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        given = self.candidates
        if is_auto(given):
            return
        if isinstance(given, str) or not isinstance(given, Sequence) or not given:
            raise ParameterError(
                f"candidates is {given!r}; give 'auto', or one learner or more in a list, such as "
                "['crowd-kernel', 'vote-regression']."
            )
        made = [_made(one, self.random_state) for one in given]
        names = [name_of(learner) for learner in made]
        for name, learner in zip(names, made, strict=True):
            if not isinstance(learner, CrowdClassifier) or isinstance(learner, Auto):
                raise ParameterError(
                    f"candidates has {name!r}, which cannot be one; give learners of classes."
                )
            if names.count(name) > 1:
                raise ParameterError(f"candidates has {name!r} twice; give each learner once.")
            learner._validate_parameters()

    def _saved_fault(self) -> str:
        if not self.model_.__sklearn_is_fitted__():
            return "model_ is not fitted"
        own, inner = (
            (len(one.tasks_), len(one.workers_), len(one.classes_)) for one in (self, self.model_)
        )
        if own != inner:
            return "model_ does not fit tasks_, workers_ and classes_"
        if self.chosen_ != name_of(self.model_):
            return "chosen_ is not the name of model_"
        if self.scores_ and self.chosen_ not in self.scores_:
            return "scores_ has no score of chosen_"
        if self.reason_ != reason_of(self.chosen_, self.scores_):
            return "reason_ is not that of the choice"
        return ""

    # -------------------------------------------------------------------------------------- fit

    def _fit(self, training: Training) -> Learned:
        if training.resume:
            raise ParameterError(
                "Auto writes no checkpoints to resume from; fit without resume, or name a learner "
                "that does."
            )
        learners = {name_of(one): one for one in self._learners(training)}
        found = self._held_out(learners, training)
        scores = {name: one.score for name, one in found.items()}
        chosen = leader(scores, MIN_LEAD) if scores else next(iter(learners))
        model = learners[chosen]
        with stage(chosen):
            model._publish_quietly(training)
        table = score_table(scores)
        return Learned(
            np.empty((0, 0)),
            confusion=model.confusion_.copy(),
            probas=model.probas_.copy(),
            n_iter=model.n_iter_,
            converged=model.converged_,
            history=model.history_,
            findings=(*model.findings_, *_undecided(found, chosen, training.labels)),
            extra={
                "chosen": chosen,
                "model": model,
                "scores": table,
                "reason": reason_of(chosen, table),
            },
        )

    def _learners(self, training: Training) -> list[CrowdClassifier]:
        """Return the unfitted candidates, the preferred one first."""
        seed = self.random_state
        if not isinstance(self.candidates, str):
            return [_made(one, seed) for one in self.candidates]
        if is_dataset(training.X):
            return [_made("maxmig", seed)]
        if np.prod(training.X.shape[1:]) > MOST_FEATURES:
            try:
                return [_made(name, seed) for name in LARGE_INPUTS]
            except MissingDependencyError:  # a kernel is slow on so many numbers, and works
                pass
        kernel, *others = (_made(name, seed) for name in VECTORS)
        return [kernel.set_params(class_prior=_class_prior(training)), *others]

    def _held_out(
        self, learners: Mapping[str, CrowdClassifier], training: Training
    ) -> dict[str, HeldOutTasks]:
        """Return held-out predictions and scores; nothing if there is nothing to choose by."""
        labelled = int((training.labels.labels_per_task > 0).sum())
        if len(learners) == 1 or labelled < LEAST_TASKS or is_dataset(training.X):
            return {}
        seed = int(as_generator(self.random_state).integers(2**32))
        folds = TaskFolds.of(training.labels, seed)
        found = {}
        for name, learner in learners.items():
            with stage(f"{name}, held-out tasks"):
                found[name] = held_out_tasks(learner, training, folds)
        return found

    # ---------------------------------------------------------------------------------- predict

    def _log_probas(self, X: Any) -> Floats:
        output: Floats = self.model_._log_probas(X)
        return output

    def predict_proba(self, X: Any, labels: Any = None, *, tasks: Any = None) -> Floats:
        """Return the chosen learner's (n, K) class probabilities of new tasks."""
        probas: Floats = self.model_.predict_proba(self._checked(X), labels, tasks=tasks)
        return probas

    def _label_log_probas(self, features: Any, labels: CrowdLabels) -> Floats:
        values: Floats = self.model_._label_log_probas(features, labels)
        return values

    # -------------------------------------------------------------------------------------- files

    def _network_files(self) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        if hasattr(self.model_, "_network_files"):
            files = self.model_._network_files()
        return files

    def _set_network(self, files: dict[str, bytes]) -> None:
        if hasattr(self.model_, "_set_network"):
            self.model_._set_network(files)


def _class_prior(training: Training) -> Any:
    """Return class frequencies if the votes are much flatter than these, else "auto".

    Random mistakes make rare classes look frequent. CrowdKernel aligns its predictions with the
    votes, which is wrong then.
    """
    labels = training.labels
    fit = get_method(FREQUENCIES)()._fit_without_checks(labels)
    excess = _entropy(labels.class_totals) - _entropy(fit.class_prior_)
    if excess <= FLAT_VOTES * np.log(labels.n_classes):
        return "auto"
    return np.asarray(fit.class_prior_)


def _entropy(weights: Floats) -> float:
    shares = weights[weights > 0] / weights.sum()
    return float(-(shares * np.log(shares)).sum())


def _made(one: Any, seed: int | None) -> CrowdClassifier:
    """Return an unfitted learner from its name, or a copy of a learner with its parameters."""
    if isinstance(one, str):
        learner: CrowdClassifier = get_method(one, "learning")(random_state=seed)
        return learner
    if not isinstance(one, CrowdClassifier):
        raise ParameterError(
            f"candidates has {one!r}, which is neither a name nor a learner; give names such as "
            "'crowd-kernel'."
        )
    return type(one)(**one.get_params(deep=False))


def name_of(learner: CrowdClassifier) -> str:
    """Return a learner's name, with the parameters that are not its defaults.

    Examples
    --------
    >>> from wisecrowd.learning import CrowdKernel
    >>> name_of(CrowdKernel(balance=0.0))
    'crowd-kernel balance=0.0'
    """
    usual = type(learner)().get_params(deep=False)
    given = learner.get_params(deep=False)
    own = [
        f"{key}={'given' if np.ndim(value) else value}"
        for key, value in given.items()
        if key != "random_state" and repr(value) != repr(usual[key])
    ]
    return " ".join([kebab_case(type(learner).__name__), *own])


def reason_of(chosen: str, table: Mapping[str, Mapping[str, float]]) -> str:
    """Return the sentence that explains the choice."""
    if not table:
        return f"{chosen} is used, because there is nothing to choose between or too little data"
    first, own = next(iter(table)), table[chosen]
    stated = f"{own['score']:.3f} ± {own['standard_error']:.3f}"
    others = sorted((-row["score"], name) for name, row in table.items() if name != chosen)
    rival = f"{others[0][1]} {-others[0][0]:.3f}"
    if chosen != first:
        lead = f"{own['lead']:.3f} ± {own['lead_error']:.3f}"
        return f"{chosen} predicts held-out labels best ({stated}) and leads {first} by {lead}"
    if -others[0][0] <= own["score"]:
        return f"{chosen} predicts held-out labels best ({stated}; {rival})"
    return (
        f"{chosen} is preferred, and no other learner predicts held-out labels better by two "
        f"standard errors ({stated}; {rival})"
    )


def _undecided(
    found: Mapping[str, HeldOutTasks], chosen: str, labels: CrowdLabels
) -> Iterator[Finding]:
    """Yield a finding if a learner with the same score gives many tasks another class."""
    if chosen not in found:
        return
    own = found[chosen]
    for name, other in found.items():
        gap, error = paired_difference(own.score, other.score)
        differ = own.probas.argmax(axis=1) != other.probas.argmax(axis=1)
        share = float(differ.mean())
        if name == chosen or not abs(gap) <= error or share <= DISAGREE:
            continue
        rows = own.rows[differ]
        ids = labels.tasks[rows[:N_AFFECTED]]
        yield Finding(
            "learners-disagree", "low", share, tuple(ids.tolist()),
            f"{chosen} and {name} predict held-out labels equally well, within a standard error, "
            f"and their classifiers differ on {share:.0%} of the tasks.",
            f"Gold labels of {len(ids)} such tasks would show which is right: {describe_ids(ids)}.",
        )  # fmt: skip
