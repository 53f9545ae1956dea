"""Agreement of votes on whether two items are the same."""

from wisecrowd.kinds.pairs.agreement import agreement_evidence

__all__ = ["agreement_evidence"]
