"""Label Studio's controls: which of them label a task as a whole, and how each is written.

Offsets of spans stay as they are, and rectangles are in pixels. The items that a comparison is
about are fields of the task's data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from wisecrowd.core.columns import guess, listed
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.option_spelling import for_reader, option
from wisecrowd.io.formats import Request
from wisecrowd.io.platforms.answer_forms import (
    CHOICES,
    NUMBER,
    PAIRWISE,
    RANKING,
    RATING,
    RECTANGLES,
    SPANS,
    TAXONOMY,
    TEXT,
    Boxes,
    Marks,
    Ranking,
    Vote,
)
from wisecrowd.io.platforms.label_records import Dropped, mapping
from wisecrowd.io.platforms.values import as_text, number_of
from wisecrowd.io.untrusted import json_text
from wisecrowd.kinds.pairs.container import CrowdPairs

# Controls that label the task as a whole, and where their value is.
WHOLE = {"choices": "choices", "rating": "rating", "number": "number", "pairwise": "selected",
          "taxonomy": "taxonomy", "ranker": "ranker", "textarea": "text"}  # fmt: skip
TEXT_SPANS, BOXED = "labels", "rectanglelabels"  # controls whose marks are read
FORMS = {TEXT_SPANS: SPANS, BOXED: RECTANGLES, "choices": CHOICES, "taxonomy": TAXONOMY,
         "rating": RATING, "number": NUMBER, "pairwise": PAIRWISE, "ranker": RANKING,
         "textarea": TEXT}  # fmt: skip
BUCKETS = "rankings in several buckets"
WITHOUT_TYPE = "marks without a label or outside of the image"
PER_REGION = "labels per region, not of a whole task"
# What else stands in a cell of a flat export: nothing, a text, or JSON of an unknown form.
EMPTY, PLAIN, OTHER = "", "plain", "other"

_TYPES = {key: name for name, key in WHOLE.items() if key != "text"}
_PLACES = frozenset({"start", "end", "x", "y", "points", "rle", "ranges", "sequence", "vertices"})
_UNREAD = {
    "datetime": "dates (datetime), not a class",
    "relation": "relations between regions",
    OTHER: "answers of an unknown form",
}


def left_out(type_of: str) -> str:
    """Return why the results of a control are not read.

    Examples
    --------
    >>> left_out("polygonlabels"), left_out("datetime")
    ('marks (polygonlabels), not labels of a whole task', 'dates (datetime), not a class')
    """
    return _UNREAD.get(type_of, f"marks ({type_of}), not labels of a whole task")


def is_mark(type_of: str) -> bool:
    """Tell whether a control marks a place in the task: a span, a box, a mask."""
    return type_of not in WHOLE and type_of not in _UNREAD and type_of not in (EMPTY, PLAIN)


def is_placed(value: Mapping[str, Any]) -> bool:
    """Tell whether a value belongs to a region: it then carries the place of that region."""
    return not _PLACES.isdisjoint(value)


def label_of(type_of: str, value: Mapping[str, Any]) -> str | None:
    """Return the class or text that a value stands for; several choices are one class.

    Examples
    --------
    >>> label_of("taxonomy", {"taxonomy": [["animal", "cat"]]}), label_of("rating", {"rating": 3})
    ('animal / cat', '3')
    """
    return as_text(answer_of(type_of, value))


def answer_of(type_of: str, value: Mapping[str, Any]) -> Any:
    """Return what a value says: a list of choices, a text or a number.

    A path in a taxonomy is written with slashes. The lines of a text area are one text.

    Examples
    --------
    >>> answer_of("taxonomy", {"taxonomy": [["animal", "cat"], ["plant"]]})
    ['animal / cat', 'plant']
    """
    found = value.get(WHOLE[type_of])
    if not isinstance(found, list):
        return found
    if type_of == "textarea":
        return "\n".join(line for line in found if isinstance(line, str))
    return [" / ".join(map(str, one)) if isinstance(one, list) else one for one in found]


def ranking_of(value: Mapping[str, Any]) -> Ranking | None:
    """Return the order of items in a value; items in several buckets have none.

    The bucket ``_`` holds the items that were not ranked.

    Examples
    --------
    >>> ranking_of({"ranker": {"_": ["c"], "best": ["b", "a"]}}).items
    ['b', 'a']
    """
    buckets = [items for name, items in mapping(value.get("ranker")).items() if name != "_"]
    if len(buckets) != 1 or not isinstance(buckets[0], list):
        return None
    return Ranking(buckets[0])


def span_of(value: Mapping[str, Any]) -> tuple[Any, Any, Any] | None:
    """Return start, end and type of a span; several types are one, and without any it is None.

    Examples
    --------
    >>> span_of({"start": 0, "end": 8, "text": "Ada Lane", "labels": ["PER"]})
    (0, 8, 'PER')
    """
    kind = as_text(value.get(TEXT_SPANS))
    return None if kind is None else (value.get("start"), value.get("end"), kind)


def place_of(value: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Return start, end and text of a span."""
    return value.get("start"), value.get("end"), value.get("text")


def is_read_mark(type_of: str, value: Mapping[str, Any]) -> bool:
    """Tell whether a mark is a span of a text or a rectangle.

    Labels of sounds have a channel, those of boxes and other regions no start.
    """
    if type_of == TEXT_SPANS:
        return "start" in value and "channel" not in value
    return type_of == BOXED and {"x", "y", "width", "height"} <= value.keys()


class Cell(NamedTuple):
    """What a cell of a flat export says.

    ``kind`` is a type of control, ``PER_REGION``, ``EMPTY``, ``PLAIN`` or ``OTHER``; ``value`` is
    what the JSON export has in its place, ``n_results`` how many results it stands for, ``marks``
    are the values of spans or rectangles.
    """

    kind: str
    value: Mapping[str, Any] = MappingProxyType({})
    n_results: int = 1
    marks: tuple[Mapping[str, Any], ...] = ()

    @property
    def label(self) -> str | None:
        """The class of the whole task, if the cell gives one."""
        return as_text(self.answer)

    @property
    def answer(self) -> Any:
        """What the cell says about the whole task: a list of choices, a text or a number."""
        if self.kind == PLAIN:
            return answer_of("choices", self.value)
        return answer_of(self.kind, self.value) if self.kind in WHOLE else None

    @property
    def form(self) -> str:
        """The form of the answer, if the cell gives one."""
        return FORMS.get(self.kind, CHOICES)


def read_cell(text: str) -> Cell:
    """Return what a cell says: one choice stands as plain text, the rest as JSON.

    Examples
    --------
    >>> read_cell("cat").label, read_cell('[{"rating":3}]').label
    ('cat', '3')
    >>> read_cell('{"choices":["dog","cat"]}').label, read_cell('["sure","unsure"]').kind
    ('cat|dog', 'labels per region, not of a whole task')
    """
    if not text.strip():
        return Cell(EMPTY, n_results=0)
    decoded = json_text(text)
    if isinstance(decoded, dict):
        return _of_objects([decoded])
    if not isinstance(decoded, list):
        return Cell(PLAIN, {"choices": [text]})
    if any(isinstance(one, str) for one in decoded):
        return Cell(PER_REGION, n_results=len(decoded))
    return _of_objects([mapping(one) for one in decoded])


def _of_objects(values: list[dict[str, Any]]) -> Cell:
    kinds = {_type_of(value) for value in values}
    kind = kinds.pop() if len(kinds) == 1 else OTHER
    if kind in WHOLE and (len(values) > 1 or is_placed(values[0])):
        kind = PER_REGION
    is_read = all(is_read_mark(kind, value) for value in values)
    if kind in (TEXT_SPANS, BOXED) and not is_read:
        kind = f"other {kind}"
    marks = tuple(values) if kind in (TEXT_SPANS, BOXED) else ()
    return Cell(kind, values[0] if kind in WHOLE else {}, len(values), marks)


def _type_of(value: dict[str, Any]) -> str:
    """Return the type of the control that writes such a value."""
    marks = [key for key in value if key.endswith("labels")]
    if marks:
        return marks[0]
    for key in value:
        if key in _TYPES:
            return _TYPES[key]
        if key == "datetime":
            return key
    if isinstance(value.get("text"), list):
        return "textarea"
    return "region" if is_placed(value) else OTHER


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


class Sides:
    """The two items of a comparison: values of fields of the task's data.

    An export names neither, so the user does, or the fields have usual names such as left and
    right. The JSON export has the names of the two compared objects, which may be those of fields.
    """

    def __init__(self, request: Request, source: str) -> None:
        self._asked = [request.asked.get(side) for side in ("left", "right")]
        self._request = request
        self._source = source
        self._known: dict[tuple[str, ...], tuple[str, str] | str] = {}

    def fields(self, names: tuple[str, ...], objects: str = "") -> tuple[str, str] | str:
        """Return the fields of the left and the right item, or the error if they are not known.

        Parameters
        ----------
        names : tuple of str
            All fields of the data.
        objects : str
            The names of the compared objects, separated by a comma.
        """
        key = (objects, *names)
        if key not in self._known:
            found = self._known[key] = self._find(names, objects)
            if not isinstance(found, str):
                self._request.found |= {"left": found[0], "right": found[1]}
        return self._known[key]

    def _find(self, names: tuple[str, ...], objects: str) -> tuple[str, str] | str:
        usual = CrowdPairs.roles()
        found: list[str | None] = []
        for side, asked in zip(("left", "right"), self._asked, strict=True):
            if asked is not None and asked.removeprefix("data.") not in names:
                return (
                    f"{self._source} has no field {asked!r} in the data of its tasks for "
                    f"{for_reader(side, f'--{side}')}; there are {listed(names)}."
                )
            found.append(asked.removeprefix("data.") if asked else _usual(side, names, usual[side]))
        if None in found:
            found = [name if name in names else None for name in objects.split(",")]
        if len(found) == 2 and found[0] is not None and found[1] is not None:
            return found[0], found[1]
        return (
            f"{self._source} does not say which items are compared; name the fields of the tasks' "
            f"data that hold them with {for_reader('left=... and right=...', '--left and --right')}"
            f" (there are {listed(names)}), or give {option('type', 'labels')} for the sides alone."
        )

    def vote(self, value: Mapping[str, Any], data: Mapping[str, Any], objects: str) -> Vote:
        """Return the comparison that a value and the data of its task stand for."""
        outcome = value.get(WHOLE["pairwise"])
        fields = self.fields(tuple(data), objects)
        if isinstance(fields, str):
            return Vote(None, None, outcome, fields)
        return Vote(data.get(fields[0]), data.get(fields[1]), outcome)


def _usual(side: str, names: tuple[str, ...], usual: tuple[str, ...]) -> str | None:
    try:
        return guess(side, names, usual)
    except DataError:  # several: none of them is certain
        return None
