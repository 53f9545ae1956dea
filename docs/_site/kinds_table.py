"""What wisecrowd does with each kind of label: a table from the registry.

``python docs/_site/kinds_table.py`` writes it into docs/index.md; a test notices if it is old.
"""

from __future__ import annotations

import re
from pathlib import Path

from method_pages import TYPES

from wisecrowd.core.kinds import KINDS, Kind
from wisecrowd.core.registry import method_names
from wisecrowd.io.formats import PLATFORMS
from wisecrowd.io.platforms import platform_of
from wisecrowd.kinds import LABELS, ORDERED
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.packs.fit import shardable_methods

BEGIN, END = "<!-- kinds: begin -->", "<!-- kinds: end -->"
PAGE = Path(__file__).parents[1] / "index.md"
GUIDES = {
    "labels": "which-method.md", "ordered": "guides/scores.md", "numbers": "guides/scores.md",
    "pairs": "guides/rank-models.md", "rankings": "methods/plackett-luce.md",
    "sequences": "guides/spans.md", "sets": "guides/multi-label.md", "boxes": "guides/boxes.md",
    "same": "guides/same-or-different.md", "texts": "guides/transcripts.md",
    "masks": "guides/masks.md",
}  # fmt: skip
COLUMNS = (
    "labels", "aggregate: methods", "compare", "evaluate", "audit", "report",
    "learn a predictor: methods", "ask next", "import from", "by shards: methods",
)  # fmt: skip
YES, NO = "✓", "–"
FEW = 5  # platforms that are named
NO_EXPORT = ("scale", "wide")  # refused, and another name of a table


def kinds_table() -> str:
    """Return the table of all kinds, in Markdown."""
    head = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    rows = [f"| {' | '.join(row(kind))} |" for kind in KINDS.values()]
    return "\n".join([*head, *rows])


def with_table(page: str) -> str:
    """Return a page with the table between its marks."""
    return re.sub(f"(?s){BEGIN}.*{END}", f"{BEGIN}\n{kinds_table()}\n{END}", page)


def row(kind: Kind) -> list[str]:
    """Return the cells of one kind."""
    name = TYPES.get(kind.name, kind.name)
    n_methods, n_learners = (len(method_names(k, kind.name)) for k in ("aggregation", "learning"))
    return [
        f"[{name}]({GUIDES[kind.name]}) `{kind.name}`" if kind.name in GUIDES else name,
        str(n_methods),
        tick(kind.has_part("scorer")),
        tick(is_evaluated(kind)),
        tick(kind.has_part("audit")),
        tick(kind.has_part("report")),
        str(n_learners or NO),
        tick(asks(kind)),
        imports(kind),
        shards(kind),
    ]


def tick(holds: bool) -> str:
    """Return the cell of a yes or no."""
    return YES if holds else NO


def is_evaluated(kind: Kind) -> bool:
    """Tell whether ``evaluate`` knows files with the answers of this kind."""
    known = [
        one.answers
        for one in KINDS.values()
        if one.name in (LABELS, ORDERED) or hasattr(one.part("scorer"), "evaluate")
    ]
    return kind.answers in known


def asks(kind: Kind) -> bool:
    """Tell whether ``next`` takes labels of this kind: it takes classes."""
    return kind.container is CrowdLabels


def imports(kind: Kind) -> str:
    """Return the platforms whose exports hold this kind."""
    found = [n for n in PLATFORMS if kind.name in platform_of(n).kinds and n not in NO_EXPORT]
    if not found:
        return "tables"
    return ", ".join(found) if len(found) <= FEW else f"{len(found)} platforms"


def shards(kind: Kind) -> str:
    """Return how many methods fit labels of this kind shard by shard."""
    packed = LABELS if kind.container is CrowdLabels else kind.name
    return str(len(shardable_methods(packed)) or NO)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
