"""Choice between methods by their held-out scores, for methods that choose another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wisecrowd.inference.held_out_labels import HeldOutScore, paired_difference


def leader(scores: Mapping[str, HeldOutScore], n_errors: float = 1.0) -> str:
    """Return the first method, or the best of those that lead it by more than ``n_errors``.

    Parameters
    ----------
    scores : mapping of name to HeldOutScore
        Scores of the same labels, the preferred method first.
    n_errors : float
        Least lead in standard errors of the difference.
    """
    first = next(iter(scores))
    best, lead = first, 0.0
    for name, score in scores.items():
        ahead, error = paired_difference(score, scores[first])
        if ahead > max(lead, n_errors * error):  # false for an undefined error
            best, lead = name, ahead
    return best


def score_table(scores: Mapping[str, HeldOutScore]) -> dict[str, dict[str, float]]:
    """Return the scores as plain numbers: score, standard error, and lead over the first."""
    first = next(iter(scores.values()), None)
    table = {}
    for name, score in scores.items():
        lead, error = paired_difference(score, first) if first is not None else (0.0, 0.0)
        table[name] = {"score": score.mean, "standard_error": score.standard_error}
        table[name] |= {"lead": lead, "lead_error": error}
    return table


def are_numbers(value: Any, depth: int = 1) -> bool:
    """Return whether a value is a mapping, or one of mappings, from names to numbers."""
    if depth == 0:
        return isinstance(value, float)
    return isinstance(value, dict) and all(
        isinstance(name, str) and are_numbers(item, depth - 1) for name, item in value.items()
    )
