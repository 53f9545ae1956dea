"""Lists of the common checks, and a function that runs them on a method."""

from __future__ import annotations

import warnings
from typing import Any
from unittest import SkipTest

from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.kinds import get_kind
from wisecrowd.kinds.classes.answers import ClassAnswers
from wisecrowd.testing import (
    behaviour,
    contract,
    degenerate,
    humility,
    invariance,
    prior_checks,
)
from wisecrowd.testing.foundation import Check, maker

# Checks of methods of every kind.
GENERAL: tuple[Check, ...] = (
    invariance.check_row_order,
    invariance.check_renaming_tasks,
    invariance.check_renaming_workers,
    invariance.check_symmetries,
    invariance.check_input_forms,
    invariance.check_integer_weights,
    invariance.check_same_seed,
    invariance.check_fit_twice,
    humility.check_ties_and_single_workers,
    contract.check_parameters,
    contract.check_bad_parameters,
    contract.check_not_fitted,
    contract.check_tables,
    contract.check_pickle,
    contract.check_save_and_load,
    contract.check_clone,
    contract.check_docstring,
    contract.check_registered_name,
)
# Checks of methods that take classes.
CHECKS: tuple[Check, ...] = (
    *GENERAL,
    invariance.check_renaming_classes,
    invariance.check_matrix,
    invariance.check_input_untouched,
    invariance.check_thread_count,
    invariance.check_kernels_agree,
    invariance.check_unlabelled_worker,
    invariance.check_unlabelled_task,
    invariance.check_disjoint_copy,
    invariance.check_sparse_posterior,
    behaviour.check_probabilities,
    behaviour.check_recovers_truth,
    behaviour.check_recovers_own_model,
    behaviour.check_objective_monotone,
    behaviour.check_predict_repeats_fit,
    behaviour.check_new_tasks,
    behaviour.check_score,
    behaviour.check_label_law,
    behaviour.check_warm_start,
    behaviour.check_one_label_per_task,
    behaviour.check_good_crowds,
    degenerate.check_single_labels_kept,
    degenerate.check_unanimous_labels,
    degenerate.check_even_split,
    prior_checks.check_gold,
    prior_checks.check_all_gold,
    prior_checks.check_gold_teaches,
    prior_checks.check_task_prior_forms,
    prior_checks.check_task_prior_counts,
    prior_checks.check_uniform_task_prior,
    prior_checks.check_bad_gold_and_priors,
    degenerate.check_one_annotation,
    degenerate.check_one_worker,
    degenerate.check_one_class,
    degenerate.check_disconnected,
    degenerate.check_all_disagree,
    degenerate.check_unused_class,
    degenerate.check_empty_rows,
    degenerate.check_busy_worker,
    degenerate.check_busy_task,
    degenerate.check_zero_weights,
    degenerate.check_many_classes,
    contract.check_parameter_ranges,
    contract.check_model_selection,
)


def checks_for(kind: str) -> tuple[Check, ...]:
    """Return the checks of the methods that take a kind of labels."""
    row = get_kind(kind)
    own = getattr(row.part("checks"), "CHECKS", None)
    if own is not None:
        return (*GENERAL, *own)
    return CHECKS if row.answers is ClassAnswers else GENERAL


def check_aggregator(method: Any) -> None:
    """Run all common checks on a method; your own methods should pass them too.

    These are the checks in ``CHECKS``. The result depends only on the labels. Posteriors,
    objective, gold labels and task priors are correct. Degenerate data give a finite result or a
    clear error. Few labels are not overruled without a finding. Parameters, copies, files and
    scikit-learn's tools work as expected.

    Parameters
    ----------
    method : Aggregator, or its class
        Method to check; every check fits copies of an instance, with its parameters.

    Raises
    ------
    AssertionError
        At the first check that fails; the message names the check and the method.

    Warns
    -----
    WisecrowdWarning
        If checks were skipped because a library is not installed.

    Examples
    --------
    >>> from wisecrowd.aggregation import MajorityVote
    >>> from wisecrowd.testing.invariance import check_row_order
    >>> check_row_order(maker(MajorityVote))  # one check; check_aggregator(MajorityVote) runs all
    """
    make = maker(method)
    for check in checks_for(make().takes):
        try:
            check(make)
        except SkipTest as reason:
            message = f"{check.__name__} was left out for {type(make()).__name__}: {reason}."
            warnings.warn(message, WisecrowdWarning, stacklevel=2)
