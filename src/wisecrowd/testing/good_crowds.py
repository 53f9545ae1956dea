"""Check that a method converges on good crowds and does not warn about itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from wisecrowd.simulate import (
    Assignment,
    Crowd,
    Dense,
    OneCoinWorkers,
    PerTask,
    SimulatedCrowd,
    crowd,
)
from wisecrowd.testing.foundation import Make, check, require

GOOD, CAREFUL = OneCoinWorkers(17, 3), OneCoinWorkers(9, 1)  # 85% and 90% correct on average
PERFECT = OneCoinWorkers(1e6, 1e-3)


def good_crowds(n_classes: int) -> Iterator[tuple[str, SimulatedCrowd]]:
    """Yield crowds of good workers, each with a description.

    In the last two, pairs of workers share one or two tasks, which is too few for some methods.
    """
    kinds: dict[str, tuple[int, Crowd, Assignment, int]] = {
        "six workers label everything": (150, 6 * GOOD, Dense(), n_classes),
        "nobody errs": (60, 6 * PERFECT, PerTask(5), 60),
    }
    if n_classes < 10:  # the slowest methods take one or two seconds per fit
        kinds["workers give fifteen labels each"] = (100, 20 * CAREFUL, PerTask(3), 104)
        kinds["workers give fifteen right labels each"] = (100, 20 * PERFECT, PerTask(3), 104)
    for name, (n_tasks, workers, assignment, seed) in kinds.items():
        yield name, crowd(n_tasks, workers, assignment, n_classes=n_classes, random_state=seed)


@check
def check_good_crowds(make: Make) -> None:
    """Require that fits to good crowds converge, and that methods do not warn about themselves.

    The common checks are off, because they have their own thresholds. Warnings about workers who
    share too few tasks count only if they share many.
    """
    for n_classes in (2,) if make().tags().binary else (2, 4, 10):
        for what, made in good_crowds(n_classes):
            where = f"on a good crowd with {n_classes} classes, where {what}"
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fitted = make()._fit_without_checks(made.labels)
            require(fitted.converged_, f"no convergence in {fitted.n_iter_} iterations {where}")
            own = [str(warning.message) for warning in caught]
            sparse = made.labels.n_annotations < 25 * made.labels.n_workers
            require(sparse or not own, f"a warning {where}: {own[:1]}")
