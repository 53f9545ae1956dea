"""What a user hands to a campaign: ids, classes, gold, costs and answers, checked."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_number

LONGEST_ID = 10_000  # characters of an id that joins
EXACT = 2**53  # whole floats from here on are the same as their neighbours
# Which sorts of ids may stand in one list; fits compare them.
TOGETHER = ({"text"}, {"bool"}, {"number", "large number"}, {"number", "fraction"})
LEFT_OUT = "(left out)"  # shown in place of an id that cannot be used


class IdError(DataError):
    """A value that cannot be an id of the campaign."""


def id_text(value: Any) -> str:
    """Return an id as JSON, which keeps text, numbers and booleans apart.

    Examples
    --------
    >>> id_text("1"), id_text(1)
    ('"1"', '1')
    """
    plain = value.item() if hasattr(value, "item") else value
    if plain is None or plain == "" or not isinstance(plain, str | int | float | bool):
        raise IdError(f"{plain!r} is no id; give a text or a number.")
    if isinstance(plain, float) and not math.isfinite(plain):
        raise IdError(f"{plain!r} is no id; give a text or a finite number.")
    if isinstance(plain, int) and plain.bit_length() > 64:
        raise IdError("An id is a number of more than 64 bits; give it as text.")
    if isinstance(plain, str) and not plain.isascii():
        try:
            plain.encode()
        except UnicodeEncodeError:
            raise IdError(
                f"{plain[:50]!r} holds half a character (a lone surrogate); correct the text."
            ) from None
    return json.dumps(plain)


def check_length(text: str, what: str) -> None:
    """Refuse an id, as JSON, that is too long to be stored."""
    if len(text) > LONGEST_ID + 2 and len(json.loads(text)) > LONGEST_ID:
        raise IdError(f"A {what} has {len(text)} characters; the limit is {LONGEST_ID}.")


def sort_of(value: Any) -> str | None:
    """Return which sort of id a value is; None if fits cannot tell it from others.

    Examples
    --------
    >>> [sort_of(value) for value in ("a", True, 3, 2.0, 2.5, 2**60, 1e300, 2**64)]
    ['text', 'bool', 'number', 'number', 'fraction', 'large number', None, None]
    """
    if isinstance(value, str | bool):
        return "text" if isinstance(value, str) else "bool"
    if isinstance(value, float):
        if not abs(value) < EXACT:
            return None
        return "number" if value.is_integer() else "fraction"
    if abs(value) < EXACT:
        return "number"
    return "large number" if -(2**63) <= value < 2**63 else None


class IdList:
    """The ids of one table, in the order of their codes.

    Parameters
    ----------
    name : str
        Of the table, "tasks", "workers" or "classes".

    Attributes
    ----------
    ids : list of ids
    left_out : set of int
        Codes of ids that were stored once and cannot be used.
    """

    def __init__(self, name: str) -> None:
        self.ids: list[Any] = []
        self.left_out: set[int] = set()
        self._what = {"classes": "class"}.get(name, name[:-1])
        self._codes: dict[str, int] = {}
        self._sorts: Counter[str] = Counter()

    def find(self, value: Any) -> int | None:
        """Return the code of an id, or None."""
        return self._codes.get(_key(value, id_text(value)))

    def check_new(self, value: Any) -> None:
        """Refuse a value that must not join."""
        text = id_text(value)
        check_length(text, self._what)
        plain = json.loads(text)
        sort = sort_of(plain)
        if sort is None:
            raise IdError(f"The {self._what} {plain!r:.40} has too many digits; give it as text.")
        if not self.is_mixed() and not _go_together({sort, *self._present()}):
            other = min(self._present())
            raise IdError(
                f"The {self._what} {plain!r:.40} is a {sort}, and the others are a {other}, as "
                f"{self._example(other)!r:.40}; give all of them the same type."
            )

    def append(self, text: str) -> None:
        """Add the id, as JSON, of the next code; one that cannot be used is left out."""
        value = _parsed(text)
        code, sort, key = len(self.ids), sort_of(value), _key(value, text)
        if sort is None or key in self._codes:
            self.left_out.add(code)
            self.ids.append(f"{text[:40]} {LEFT_OUT}")
            return
        self._sorts[sort] += 1
        self._codes[key] = code
        self.ids.append(value)

    def cut(self, size: int) -> None:
        """Forget the ids from a code on."""
        for code in range(size, len(self.ids)):
            if code in self.left_out:
                self.left_out.remove(code)
            else:
                value = self.ids[code]
                self._sorts[sort_of(value) or ""] -= 1
                self._codes.pop(_key(value, id_text(value)), None)
        del self.ids[size:]

    def is_mixed(self) -> bool:
        """Return whether ids of different sorts were stored once, when nothing refused them."""
        return not _go_together(self._present())

    def names(self, size: int | None = None) -> list[Any]:
        """Return the ids of all codes, or of the first ones; as text if they are mixed."""
        if not self.is_mixed():
            return self.ids[:size]
        return [one if isinstance(one, str) else json.dumps(one) for one in self.ids[:size]]

    def usable(self, size: int | None = None) -> list[Any]:
        """Return the distinct names that are not left out."""
        shown = enumerate(self.names(size))
        return list(dict.fromkeys(name for code, name in shown if code not in self.left_out))

    def _example(self, sort: str) -> Any:
        return next(value for code, value in enumerate(self.ids)
                    if code not in self.left_out and sort_of(value) == sort)  # fmt: skip

    def _present(self) -> set[str]:
        return {sort for sort, n in self._sorts.items() if n}


def check_together(values: list[Any], name: str) -> None:
    """Refuse ids that cannot stand in one list."""
    made = IdList(name)
    for value in values:
        made.check_new(value)
        made.append(id_text(value))


def _parsed(text: str) -> Any:
    """Return a stored id; refuse one that was not written by ``id_text``."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, str | int | float | bool) or json.dumps(value) != text:
        raise DataError(
            f"The campaign's database is damaged ({text!r:.40} is not an id); restore it from a "
            "copy."
        )
    return value


def _go_together(sorts: set[str]) -> bool:
    return any(sorts <= some for some in TOGETHER)


def _key(value: Any, text: str) -> str:
    """Return what is the same for equal ids: 1.0 is 1."""
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    return text


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
