"""Cases of values beyond any range: endless counts, numbers that overflow, ambiguous zeros."""

from __future__ import annotations

import numpy as np
from tests.support.inputs.case import N_TASKS, InputCase, rejected
from tests.support.inputs.option_cases import _fit_case, _parameter_case

_HUGE = 10**30
_ZEROS = rejected("task prior is zero everywhere", "probabilities", "logarithms", "leave it out")

CASES: tuple[InputCase, ...] = (
    _parameter_case("max_iter without end", "max_iter", _HUGE, str(_HUGE), "max_iter is",
                    "at most"),
    _parameter_case("n_init without end", "n_init", _HUGE, str(_HUGE), "n_init is", "at most"),
    _parameter_case("tol that overflows", "tol", 1e308, "1e308", "tol is 1e+308", "at most"),
    _parameter_case("a misspelled parameter", "max_iters", 5, "5",
                    "has no parameter 'max_iters'", "it has"),
    _fit_case("a task prior of zeros", _ZEROS, "task_prior", lambda: np.zeros(2)),
    _fit_case("task priors of zeros", _ZEROS, "task_prior", lambda: np.zeros((N_TASKS, 2))),
)  # fmt: skip
