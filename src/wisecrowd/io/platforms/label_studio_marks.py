"""Label Studio's spans and rectangles as answers: offsets unchanged, rectangles in pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from wisecrowd.io.formats import Request
from wisecrowd.io.platforms.answer_forms import Boxes, Marks
from wisecrowd.io.platforms.label_records import Dropped
from wisecrowd.io.platforms.label_studio_controls import (
    BOXED,
    TEXT_SPANS,
    WITHOUT_TYPE,
    span_of,
)
from wisecrowd.io.platforms.values import as_text, number_of

Size = tuple[float, float]
PERCENT: Size = (100.0, 100.0)  # the size of an image that the export does not give
_DIGITS = 6  # of a pixel; percents have rounding errors
_ROTATED = "rotated rectangles are read as their bounding boxes"
_SIZELESS = "the export has no sizes of some images; the boxes there are in percent of the image"


def marked(
    type_of: str, values: Iterable[Mapping[str, Any]], size: Size | None, request: Request
) -> tuple[Marks | Boxes, list[Dropped]]:
    """Return the marks of one control in an annotation, and those that cannot be read."""
    found: list[Any] = []
    dropped = 0
    for value in values:
        mark = span_of(value) if type_of == TEXT_SPANS else box_of(value, size, request)
        if mark is None:
            dropped += 1
        else:
            found.append(mark)
    lost = [Dropped(WITHOUT_TYPE, dropped)] if dropped else []
    if type_of == TEXT_SPANS:
        return Marks(found), lost
    return Boxes(found, size or PERCENT), lost


def box_of(
    value: Mapping[str, Any], size: Size | None, request: Request
) -> tuple[float, float, float, float, Any] | None:
    """Return a rectangle in pixels with its class; None if it has no class, or no place.

    Several classes are one. A rotated rectangle becomes its bounding box, inside of the image.
    """
    label = as_text(value.get(BOXED))
    place = [number_of(value.get(part)) for part in ("x", "y", "width", "height")]
    known = [part for part in place if part is not None]
    if label is None or len(known) < 4:
        return None
    if size is None:
        request.inventory.remark(_SIZELESS)
    full_width, full_height = size or PERCENT
    x, width = (part * full_width / 100 for part in known[0::2])
    y, height = (part * full_height / 100 for part in known[1::2])
    angle = number_of(value.get("rotation")) or 0.0
    if angle % 360:
        request.inventory.remark(_ROTATED)
        x, y, width, height = _bounding_box(x, y, width, height, math.radians(angle))
    left, right = (min(max(edge, 0.0), full_width) for edge in (x, x + width))
    top, bottom = (min(max(edge, 0.0), full_height) for edge in (y, y + height))
    if right <= left or bottom <= top:
        return None
    return (
        round(left, _DIGITS), round(top, _DIGITS), round(right - left, _DIGITS),
        round(bottom - top, _DIGITS), label,
    )  # fmt: skip


def _bounding_box(
    x: float, y: float, width: float, height: float, angle: float
) -> tuple[float, float, float, float]:
    """Return the box around a rectangle that is turned about its upper left corner."""
    cosine, sine = math.cos(angle), math.sin(angle)
    across = (0.0, width * cosine, -height * sine, width * cosine - height * sine)
    down = (0.0, width * sine, height * cosine, width * sine + height * cosine)
    return x + min(across), y + min(down), max(across) - min(across), max(down) - min(down)


def sizes_of(results: Iterable[Mapping[str, Any]]) -> dict[str, Size]:
    """Return the size of the image that each control is about: the first that is given.

    Examples
    --------
    >>> sizes_of([{"from_name": "box", "original_width": 200, "original_height": 100}])
    {'box': (200.0, 100.0)}
    """
    found: dict[str, Size] = {}
    for result in results:
        width = number_of(result.get("original_width"))
        height = number_of(result.get("original_height"))
        if width and height and width > 0 and height > 0:
            found.setdefault(as_text(result.get("from_name")) or "", (width, height))
    return found
