"""Wide tables with several questions per worker: columns such as R1_effusion to R3_size_mm."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

_JOINT = r"[ _.:/|-]+"
# Ways to split a name in two; which part is the worker is decided by the names together.
_SPLITS = (
    re.compile(r"(.+?) *[(\[](.+)[)\]]"),
    re.compile(rf"([^ _.:/|-]+){_JOINT}(.+)"),
    re.compile(rf"(.+){_JOINT}([^ _.:/|-]+)"),
    re.compile(rf"(\D*\d+){_JOINT}(.+)"),
    re.compile(rf"(.+){_JOINT}([^\d _.:/|-]+[ _-]?\d+)"),
)
_NUMBERED = re.compile(r"(.*?)[ _-]*\d+")
# Words for workers; with numbers they are names of workers, not of questions.
_WORKERS = re.compile(
    r"annot|rater|worker|reader|reviewer|coder|judge|expert|crowd|human|model|user|doctor|nurse|"
    r"label+er|grader|person|radiologist|student|gpt|llm|turker|assessor|physician|voter|team|novice|layper",
    re.IGNORECASE,
)
_QUESTIONS = {"q", "question", "item", "task", "image", "page", "part"}  # numbered, no workers
_FULL = 0.8  # share of the pairs of worker and question that have a column


def find_grid(names: Sequence[str]) -> dict[str, list[str]] | None:
    """Return the columns of each question, if names are those of workers times questions.

    Examples
    --------
    >>> find_grid(["R1_cat", "R1_size_mm", "R2_cat", "R2_size_mm"])
    {'cat': ['R1_cat', 'R2_cat'], 'size_mm': ['R1_size_mm', 'R2_size_mm']}
    >>> find_grid(["cat_R1", "dog_R1", "cat_R2", "dog_R2"])
    {'cat': ['cat_R1', 'cat_R2'], 'dog': ['dog_R1', 'dog_R2']}
    >>> find_grid(["expert_1", "expert_2", "crowd_1", "crowd_2"]) is None
    True
    """
    found = [candidate for split in _SPLITS for candidate in _grids(names, split)]
    # Numbered workers are better evidence than words in all combinations.
    best = max(found, key=lambda one: (-one[0], sum(map(len, one[1].values()))), default=None)
    return None if best is None else best[1]


def _grids(
    names: Sequence[str], split: re.Pattern[str]
) -> Iterator[tuple[float, dict[str, list[str]]]]:
    """Yield the share of columns that was needed, and the columns by question, of a split."""
    parts = {name: match.groups() for name in names if (match := split.fullmatch(name.strip()))}
    for worker, question in ((0, 1), (1, 0)):
        workers = {part[worker] for part in parts.values()}
        grid: dict[str, list[str]] = {}
        for name, part in parts.items():
            grid.setdefault(part[question], []).append(name)
        grid = {one: columns for one, columns in grid.items() if len(columns) > 1}
        full = sum(map(len, grid.values())) / max(len(workers) * len(grid), 1)
        least = _least(workers, list(grid))
        if min(len(workers), len(grid)) > 1 and full >= least:
            yield least, grid


def _least(workers: Collection[str], questions: Collection[str]) -> float:
    """Return the share of all columns that such names of workers and questions need."""
    words = {match[1].lower() if (match := _NUMBERED.fullmatch(name)) else None for name in workers}
    if all(map(str.isdecimal, questions)) or words & _QUESTIONS:
        return 2.0  # never
    if words == {""} and any(map(_WORKERS.search, questions)):  # expert_1, novice_1
        return 2.0
    if (len(words) == 1 and None not in words) or all(map(_WORKERS.search, workers)):
        return _FULL
    return 1.0  # ann_effusion: two words, in all combinations
