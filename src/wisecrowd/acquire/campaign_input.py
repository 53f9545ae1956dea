"""What a user hands to a campaign: classes, gold, costs and answers, checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from wisecrowd.acquire.campaign_ids import id_text
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_number


def checked_prices(cost: Any) -> dict[str, float]:
    """Return the positive cost of each worker, by the text of its id."""
    prices = {} if cost is None else {id_text(k): float(v) for k, v in dict(cost).items()}
    for worker, price in prices.items():
        check_number(f"The cost of worker {worker}", price, 1e-12)
    return prices


def class_list(classes: Any, gold: dict[str, str], tasks: NDArray[Any]) -> list[Any]:
    """Return the classes that are declared, else those of the gold; refuse gold outside of them."""
    if classes is None:
        check_gold(gold, tasks, None)
        return distinct(json.loads(label) for label in gold.values())
    names = distinct(classes)
    check_gold(gold, tasks, names)
    return names


def digest_of(ids: Iterable[Any]) -> str:
    """Return a digest of ids in their order."""
    return hashlib.sha256("\n".join(map(id_text, ids)).encode()).hexdigest()


def check_gold(gold: dict[str, str], tasks: NDArray[Any], classes: list[Any] | None) -> None:
    """Refuse gold about unknown tasks or with unknown classes."""
    known = {id_text(task) for task in tasks.tolist()}
    named = None if classes is None else {id_text(one) for one in classes}
    for task, label in gold.items():
        if task not in known:
            raise DataError(
                f"Gold names task {task}, which is not in the campaign; remove it from the gold or "
                "add the task."
            )
        if named is not None and label not in named:
            raise DataError(
                f"Gold gives task {task} the class {label}, which is not among the classes "
                f"({describe_ids(classes or [])}); declare it or correct the gold."
            )


def distinct(ids: Iterable[Any] | None) -> list[Any]:
    """Return distinct ids in their order."""
    return [] if ids is None else list(dict.fromkeys(ids))


def answer_rows(answers: Any) -> Iterable[tuple[Any, ...]]:
    """Yield (task, worker, label, timestamp, id) of a frame or of tuples."""
    if hasattr(answers, "columns") or hasattr(answers, "column_names"):
        import narwhals as nw

        frame = nw.from_native(answers, eager_only=True)
        lacking = [name for name in ("task", "worker", "label") if name not in frame.columns]
        if lacking:
            raise DataError(f"The frame has no column {lacking[0]!r}; rename the one that is it.")
        names = ("task", "worker", "label", "timestamp", "id")
        n = len(frame)
        columns = [frame[c].to_list() if c in frame.columns else [None] * n for c in names]
        yield from zip(*columns, strict=True)
        return
    for row in answers:
        given = tuple(row)
        if not 3 <= len(given) <= 5:
            raise DataError(
                f"An answer has {len(given)} values; give task, worker, label and, if there are "
                "any, timestamp and id."
            )
        yield (*given, *[None] * (5 - len(given)))
