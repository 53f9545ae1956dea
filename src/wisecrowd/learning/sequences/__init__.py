"""Taggers that learn from crowds' spans.

They are not in the registry of learners, whose rows are tasks with one vector each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wisecrowd.learning import network_libraries

if TYPE_CHECKING:
    from wisecrowd.learning.sequences.token_tagger import TokenTagger as TokenTagger


def __getattr__(name: str) -> Any:
    if name != "TokenTagger":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with network_libraries(name):
        from wisecrowd.learning.sequences.token_tagger import TokenTagger
    return TokenTagger
