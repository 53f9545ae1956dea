"""The row of numbers in the table of kinds."""

from __future__ import annotations

from types import ModuleType

from wisecrowd.core.kinds import Kind, Words
from wisecrowd.kinds.numbers.answers import NumberAnswers, number_prior
from wisecrowd.kinds.numbers.container import CrowdNumbers


def updating() -> ModuleType:
    """Return the module of the updates of fits, which loads methods."""
    from wisecrowd.kinds.classes.families import updating

    return updating


KIND = Kind(
    name="numbers",
    package="wisecrowd.kinds.numbers",
    also_called=("number", "numeric", "regression", "continuous", "values", "scores"),
    container=CrowdNumbers,
    answers=NumberAnswers,
    default_method="auto-numbers",
    pack_method="gaussian-em",
    refit_method="gaussian-em",
    default_learner="raykar-regression",
    prior=number_prior,
    recognises=lambda columns: columns >= {"task", "value"} and "label" not in columns,
    true_numbers=True,
    words=Words("numbers", output="numbers.csv"),
    updating=updating,
)
