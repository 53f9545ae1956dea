"""Small published tables that come with the package."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from wisecrowd.kinds.classes.container import CrowdLabels


def anaesthetists() -> CrowdLabels:
    """Return the anaesthetists' ratings of Dawid and Skene (1979).

    Five anaesthetists (the workers, 1 to 5) rated 45 patients (the tasks, 1 to 45) from forms
    filled in before surgery: 1 is fit for a general anaesthetic, 4 is the least fit. Observer 1
    rated every patient three times; those ratings are replicates and all are kept.

    Returns
    -------
    CrowdLabels
        315 annotations by 5 workers of 45 tasks, in 4 classes.

    References
    ----------
    .. [1] A. P. Dawid and A. M. Skene. Maximum likelihood estimation of observer error-rates using
       the EM algorithm. Journal of the Royal Statistical Society C, 28(1):20-28, 1979, table 1.

    Examples
    --------
    >>> labels = anaesthetists()
    >>> labels.n_tasks, labels.n_workers, labels.n_classes, labels.n_annotations
    (45, 5, 4, 315)
    """
    from wisecrowd.kinds.classes.container import CrowdLabels

    table = resources.files("wisecrowd.datasets").joinpath("anaesthetists.csv")
    with table.open(encoding="utf-8") as file:
        task, worker, label = np.loadtxt(
            file, dtype=np.int64, delimiter=",", skiprows=1, unpack=True
        )
    return CrowdLabels.from_arrays(task, worker, label, duplicates="keep")
