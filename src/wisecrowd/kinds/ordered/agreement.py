"""Agreement of ordered classes: that of classes, at the ordinal level by default."""

from wisecrowd.kinds.classes.agreement import (
    agreement_evidence,
    class_evidence,
    worker_pairs,
)
from wisecrowd.kinds.classes.metrics.agreement import LEVELS

__all__ = ["LEVELS", "agreement_evidence", "class_evidence", "worker_pairs"]
