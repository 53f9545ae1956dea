"""Study: the labels, a fit, an audit and known classes, from which a report is computed."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.crowd_audit import Audit, Shared, check_parts, plan_of, run_parts
from wisecrowd.audit.group_gaps import check_group_options
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdError, WisecrowdWarning
from wisecrowd.core.kinds import LABELS, get_kind, kind_of
from wisecrowd.core.part import NotApplicable
from wisecrowd.core.registry import get_method, kebab_case, names_default
from wisecrowd.core.types import Codes, Floats
from wisecrowd.kinds.classes.audit.shared import fit_with_law
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.label_law import LabelLaw, OneCoinLaw
from wisecrowd.kinds.classes.truth import as_gold, as_truth
from wisecrowd.truth.blind_fits import checking_of, require_blind
from wisecrowd.truth.checked_answers import read_checked
from wisecrowd.truth.designs import Design

Options = Mapping[str, Mapping[str, Any]]  # keywords of audit parts, by name of the part

LARGE = 200_000  # numbers of labels above which the audit is shortened,
MANY = 2_000  # and of workers
# Left out of the audit of a large crowd: collusion compares the same pairs.
LEFT_OUT = {
    "groups": "there are very many labels or workers, and collusion compares the same pairs."
}
# Parts that are about the reported labels, for every method.
OF_RESULTS = ("confidence", "group-gaps", "workers")
MOST_CONFUSION = 20_000_000  # entries of all workers' confusion matrices


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that a report is computed from.

    Attributes
    ----------
    labels : CrowdLabels
    fit : fitted method
        Fit whose labels are reported. It has seen the gold.
    blind : fitted method
        Fit of the same method without gold, scored by known classes. Equal to ``fit`` if there is
        no gold.
    method : str
        Its command-line name.
    shared : fitted method, optional
        Fit that the parts of the audit share; equal to ``blind`` if that has a label law.
    members : tuple of fitted methods
        Methods that a fit of the default method, made for this study, consists of. They have their
        default parameters, and were fitted without gold.
    audit : Audit
    known : (n_tasks,) codes, optional
        Known classes: -1 where unknown, ``n_classes`` for a class that no label has.
    known_from : "truth", "gold", "check list" or None
    seed : int
    effort : mapping
        Options of the audit.
    design : Design, optional
        How the tasks with known classes were drawn, if a check list says it.
    """

    labels: CrowdLabels
    fit: Any
    blind: Any
    method: str
    shared: Any
    members: tuple[Any, ...]
    audit: Audit
    known: Codes | None
    known_from: str | None
    seed: int
    effort: Options
    design: Design | None = None

    @cached_property
    def chosen(self) -> Codes:
        """(n_tasks,) codes of the reported labels."""
        return codes_of(self.fit, self.labels)

    @cached_property
    def blind_chosen(self) -> Codes:
        """(n_tasks,) codes of the labels without gold."""
        return self.chosen if self.blind is self.fit else codes_of(self.blind, self.labels)

    @cached_property
    def scored(self) -> NDArray[np.intp]:
        """Tasks with labels and a known class."""
        if self.known is None:
            return np.array([], dtype=np.intp)
        return np.flatnonzero((self.known >= 0) & (self.labels.labels_per_task > 0))

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """(n_scored,): whether the label of the fit without gold is the known class."""
        if self.known is None:
            return np.array([], dtype=bool)
        return np.asarray(self.blind_chosen[self.scored] == self.known[self.scored])

    @cached_property
    def weight(self) -> Floats:
        """Number of tasks (n_tasks,) that each one with a known class stands for, relatively."""
        n_tasks = self.labels.n_tasks
        return np.ones(n_tasks) if self.design is None else self.design.weights()

    @cached_property
    def law(self) -> LabelLaw:
        """Label law of the fit without gold; for a vote, the law of its worker accuracies.

        The class prior of a vote is the share of each class among the chosen labels. The law of
        another method would be more confident than the vote.
        """
        law: LabelLaw | None = self.blind._label_law()
        if law is not None:
            return law
        prior = getattr(self.blind, "class_prior_", None)
        if prior is None:
            prior = np.bincount(self.blind_chosen, minlength=self.labels.n_classes) + 1.0
        accuracy = np.clip(np.asarray(self.blind.worker_accuracy_), 1e-6, 1 - 1e-6)
        return OneCoinLaw(np.asarray(prior / np.sum(prior), dtype=np.float64), accuracy)

    @property
    def has_confusion(self) -> bool:
        """Whether the confusion matrices of all workers fit within the size limit."""
        return matrices_fit(self.labels)


def matrices_fit(labels: CrowdLabels) -> bool:
    """Return whether the confusion matrices of all workers fit within the size limit."""
    return labels.n_workers * labels.n_classes**2 <= MOST_CONFUSION


def codes_of(fit: Any, labels: CrowdLabels) -> Codes:
    """Return the codes (n_tasks,) of a fit's labels, whose classes are those of the data."""
    answers: Any = get_kind(getattr(fit, "takes", LABELS)).answers
    codes: Codes = answers.codes(vars(fit), labels)
    return codes


def study_crowd(
    labels: Any,
    *,
    method: str | Aggregator | None = None,
    fit: Any = None,
    gold: Any = None,
    truth: Any = None,
    checked: Any = None,
    options: Options | None = None,
    random_state: int = 0,
) -> Study:
    """Fit and audit a crowd for a report.

    Parameters
    ----------
    labels : CrowdLabels or data of any accepted form
    method : str or unfitted method, optional
        By default the default method of the kind: "auto", or "auto-ordered" for ordered classes.
    fit : fitted method, optional
        A fit of these labels, reported instead of ``method``.
    gold, truth
        Known classes: the fit uses gold; truth is used only to score it.
    checked : frame, optional
        A check list with answers, used instead of truth.
    options : mapping of part of the audit to keywords, optional
    random_state : int
    """
    if fit is not None and gold is not None:
        raise ParameterError(
            "gold cannot be used with fit; give truth to score it, or method instead of fit."
        )
    crowd = as_crowd_labels(labels)
    given = None
    if checked is not None:
        require_alone(gold, truth)
        given = read_checked(checked, crowd, checking_of(crowd))
        truth = given.answers
    asked = options or {}
    check_parts(asked, plan_of(crowd).parts)
    check_group_options(crowd, **asked.get("group-gaps", {}))
    if method is None or names_default(method):
        method = kind_of(crowd).default_method
    gold_codes = as_gold(gold, crowd)
    known = None if truth is None else as_truth(truth, crowd)
    known_from = None if truth is None else "truth" if checked is None else "check list"
    if known is None and gold_codes is not None:
        known, known_from = gold_codes, "gold"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)  # the page shows warnings_ itself
        if fit is None:
            blind = _unfitted(method).fit(crowd)
            reported = blind if gold is None else _unfitted(method).fit(crowd, gold=gold)
        else:
            reported = blind = _checked(fit, crowd)
            if truth is not None:
                require_blind(fit)
        name = kebab_case(type(reported).__name__)
        effort = _merged(audit_options(crowd), asked)
        shared = _shared_fit(blind, crowd)
        made = (blind, shared) if fit is None else (shared,) if shared is not blind else ()
        members = tuple(member for one in made for member in _members(one))
        usable = _as_gold_array(known, crowd)
        own: dict[str, Any] = {name: {"fit": blind} for name in OF_RESULTS}
        design = None
        if given is not None:
            own["confidence"] = own["confidence"] | {"checked": checked}
            assert known is not None
            answered = (known >= 0) & (crowd.labels_per_task > 0)
            design = given.design.strata_of(answered) if given.listed else None
            if design is not None:
                own["workers"] = own["workers"] | {"weight": design.weights()}
        elif truth is not None:
            own["confidence"] = own["confidence"] | {"truth": truth}
        common = Shared(crowd, usable, shared, random_state)
        audit = _audit(common, crowd, _merged(effort, own))
    return Study(
        crowd, reported, blind, name, shared, members, audit, known, known_from, random_state,
        effort, design,
    )  # fmt: skip


def require_alone(gold: Any, truth: Any) -> None:
    """Refuse other known answers beside a check list."""
    if gold is not None or truth is not None:
        raise ParameterError(
            "A check list cannot be used with gold or truth; give one of them at a time."
        )


def _unfitted(method: str | Aggregator) -> Aggregator:
    if isinstance(method, str):
        made: Aggregator = get_method(method)()
        return made
    if isinstance(method, Aggregator):
        return copy.deepcopy(method)
    raise ParameterError(f"method is {method!r}; give a name such as 'dawid-skene', or a method.")


def _checked(fit: Any, labels: CrowdLabels) -> Any:
    if not getattr(fit, "__sklearn_is_fitted__", lambda: False)():
        raise ParameterError("fit is not fitted; call its fit first, or give it as method.")
    ids = (
        (fit.tasks_, labels.tasks), (fit.workers_, labels.workers), (fit.classes_, labels.classes)
    )  # fmt: skip
    if not all(np.array_equal(fitted, given) for fitted, given in ids):
        raise DataError(
            f"The fit is of {len(fit.tasks_)} tasks, {len(fit.workers_)} workers and "
            f"{len(fit.classes_)} classes that are not those of the labels ({labels.n_tasks}, "
            f"{labels.n_workers} and {labels.n_classes}); give the fit of these labels."
        )
    return fit


def _as_gold_array(known: Codes | None, labels: CrowdLabels) -> NDArray[Any] | None:
    """Return known classes (n_tasks,) as ids or None; None if no class is usable."""
    if known is None:
        return None
    usable = (known >= 0) & (known < labels.n_classes) & (labels.labels_per_task > 0)
    if not usable.any():
        return None
    array = np.full(labels.n_tasks, None, dtype=object)
    array[usable] = labels.classes[known[usable]]
    return array


# ------------------------------------------------------------------------------------------- audit


def _shared_fit(blind: Any, labels: CrowdLabels) -> Any:
    """Return a fit with a label law, or None if there is none; parts then report the reason."""
    if not matrices_fit(labels):
        return None
    try:
        return fit_with_law(labels, blind)
    except WisecrowdError:
        return None


def _members(fit: Any) -> list[Any]:
    """Return the methods that a fit of the default method consists of; none for other fits."""
    from wisecrowd.kinds.classes.methods.auto import Auto

    has_defaults = isinstance(fit, Auto) and isinstance(fit.class_prior, str)
    return fit.members_ if has_defaults and fit.class_prior == Auto.class_prior else []


def _audit(shared: Shared, labels: CrowdLabels, options: Options) -> Audit:
    """Run every part of the audit; a failing part does not prevent the others."""
    parts = plan_of(labels).parts
    reasons = {name: _reason_to_skip(name, labels) for name in parts}
    chosen = {name: part for name, part in parts.items() if reasons[name] is None}
    found = run_parts(labels, chosen, shared, options, skip_on=(NotApplicable, WisecrowdError))
    skipped = {name: found.skipped.get(name, reasons[name]) for name in parts}
    return replace(found, skipped={name: why for name, why in skipped.items() if why})


def _merged(first: Options, second: Options) -> Options:
    """Return the keywords of both for each part; those of the second take precedence."""
    return {name: {**first.get(name, {}), **second.get(name, {})} for name in {**first, **second}}


def _reason_to_skip(name: str, labels: CrowdLabels) -> str | None:
    if not matrices_fit(labels) and name not in ("agreement", "confidence"):
        return "there are too many classes for confusion matrices of all workers."
    return LEFT_OUT.get(name) if is_large(labels) else None


def is_large(labels: CrowdLabels) -> bool:
    """Return whether the crowd is so large that the audit must be shortened."""
    return labels.n_annotations >= LARGE or labels.n_workers >= MANY


def audit_options(labels: CrowdLabels) -> Options:
    """Return the options of the audit; very many labels need few repetitions."""
    if not is_large(labels):
        return {}
    return {"agreement": {"n_replicates": 200}}
