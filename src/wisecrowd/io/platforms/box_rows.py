"""Boxes of an export as columns: one row per box, or per worker who drew nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from wisecrowd.core.regions import COORDINATES, IMAGE_HEIGHT, IMAGE_WIDTH
from wisecrowd.io.inventory import HUMAN
from wisecrowd.io.platforms.label_records import half_a_character
from wisecrowd.io.platforms.values import number_text, unknown_details
from wisecrowd.io.sources import Source


class BoxRow(NamedTuple):
    """A box that a worker drew in an image; without coordinates, the worker drew nothing."""

    task: str
    worker: str
    box: tuple[Any, ...] = (None,) * 4  # x, y, width, height
    label: str | None = None
    size: tuple[Any, Any] = (None, None)  # width and height of the image
    kind: str = HUMAN


def box_columns(rows: Iterable[BoxRow], source: Source) -> dict[str, Any]:
    """Return rows as Arrow columns; numbers are text, so that wrong ones are found at the gate."""
    import pyarrow as pa

    listed = list(rows)
    texts: dict[str, list[Any]] = {
        "task": [row.task for row in listed],
        "worker": [row.worker for row in listed],
        **{name: [number_text(row.box[k]) for row in listed]
           for k, name in enumerate(COORDINATES)},
        "label": [row.label for row in listed],
        **{name: [number_text(row.size[k]) for row in listed]
           for k, name in enumerate((IMAGE_WIDTH, IMAGE_HEIGHT))},
        "worker_kind": [row.kind for row in listed],
    }  # fmt: skip
    try:
        columns = {name: pa.array(values, pa.large_string()) for name, values in texts.items()}
    except UnicodeEncodeError:
        raise half_a_character(source) from None
    return {**unknown_details(len(listed)), **columns}
