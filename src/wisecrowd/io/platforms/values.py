"""Values as platforms write them: ids, several choices, times, rewards, names of questions."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from wisecrowd.core.columns import several_named
from wisecrowd.core.exceptions import DataError
from wisecrowd.io.inventory import HUMAN, SeveralQuestionsError, listed
from wisecrowd.io.sources import Source

SEVERAL = "|"  # between the choices of one judgement
_FORMATS = (
    "%Y-%m-%d %H:%M:%S UTC",
    "%Y-%m-%d %H:%M:%S %z",
    "%a %b %d %H:%M:%S %Y",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
)
_HOURS = {"PST": -8, "PDT": -7, "UTC": 0, "GMT": 0, "EST": -5, "EDT": -4}
_CURRENCY = "$€£¥ \t"


def as_text(value: Any) -> str | None:
    """Return an id or label as text, several choices as one; None where there is none.

    Numbers that are whole are written without a decimal point; several choices are put in order.

    Examples
    --------
    >>> as_text(7), as_text(3.0), as_text(True), as_text(["dog", "cat"]), as_text({"x": 1})
    ('7', '3', 'true', 'cat|dog', None)
    """
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**18 else None
    if isinstance(value, float):
        if value != value or abs(value) == float("inf"):
            return None
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, list):
        texts = [as_text(one) for one in value]
        if any(text is None for text in texts):
            return None
        return SEVERAL.join(sorted({text for text in texts if text is not None})) or None
    return None


def number_text(value: Any) -> str | None:
    """Return a number as text; one that is not finite stays, because it is an error.

    Examples
    --------
    >>> number_text(2.5), number_text(10**400), number_text("7"), number_text(None)
    ('2.5', 'inf', '7', None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return as_text(value)
    try:
        return repr(float(value))
    except OverflowError:
        return "inf"


def as_numbers(values: Iterable[Any]) -> Any:
    """Return numbers, also those written like ``$0.05``, as an Arrow array; null where none is.

    Examples
    --------
    >>> as_numbers(["$0.05", 2, None, "soon"]).to_pylist()
    [0.05, 2.0, None, None]
    """
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        return _by_distinct(values, as_numbers)
    return pa.array([number_of(value) for value in values], pa.float64())


def _by_distinct(column: Any, convert: Callable[[list[Any]], Any]) -> Any:
    """Convert every distinct value of a column once."""
    coded = column.combine_chunks().dictionary_encode()
    return convert(coded.dictionary.to_pylist()).take(coded.indices)


def number_of(value: Any) -> float | None:
    """Return a finite number, also one written like ``$0.05``, or None."""
    if value is None or isinstance(value, bool):
        return None
    try:
        number = float(value.strip(_CURRENCY) if isinstance(value, str) else value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None


def as_times(values: Iterable[Any]) -> Any:
    """Return times, as text or as seconds since 1970, as an Arrow array in UTC; null where none is.

    Examples
    --------
    >>> as_times(["2024-05-31T14:00:00Z", 0, "Tue Apr 02 10:10:10 PDT 2019"]).to_pylist()[2]
    datetime.datetime(2019, 4, 2, 17, 10, 10)
    """
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        return _by_distinct(values, as_times)
    plain = [value if isinstance(value, str | int | float) else None for value in values]
    return pa.array([_time(value) for value in plain], pa.timestamp("us"))


def _time(value: str | float | None) -> datetime.datetime | None:
    if value is None or isinstance(value, bool):
        return None
    try:
        if not isinstance(value, str):
            seconds = value / 1000 if abs(value) > 1e11 else value  # milliseconds
            return datetime.datetime.fromtimestamp(seconds, datetime.UTC).replace(tzinfo=None)
        return _parsed(value.strip())
    except (ValueError, OverflowError, OSError):
        return None


def _parsed(text: str) -> datetime.datetime | None:
    moment, hours = None, 0
    words = text.split(" ")
    if len(words) == 6 and words[4] in _HOURS:  # Tue Apr 02 10:10:10 PDT 2019
        hours = _HOURS[words.pop(4)]
        text = " ".join(words)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        for form in _FORMATS:
            try:
                moment = datetime.datetime.strptime(text, form)
                break
            except ValueError:
                continue
    if moment is None:
        return None
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return moment - datetime.timedelta(hours=hours)


def unknown_details(size: int) -> dict[str, Any]:
    """Return the optional columns of labels that humans gave, when nothing else is known."""
    import pyarrow as pa

    return {
        "timestamp": pa.nulls(size, pa.timestamp("us")),
        "duration": pa.nulls(size, pa.float64()),
        "cost": pa.nulls(size, pa.float64()),
        "worker_kind": pa.repeat(pa.scalar(HUMAN, pa.large_string()), size),
    }


def pick_question(
    asked: str | None,
    questions: Sequence[str],
    source: Source,
    forms: Mapping[str, str] | None = None,
) -> str:
    """Return the only question, or the one that was asked for; else say which there are.

    ``forms`` gives the forms of the questions, where they are known.
    """
    if asked is not None and asked in questions:
        return asked
    if not questions:
        raise DataError(f"{source.name} has no column for labels; export it with the answers.")
    if asked is not None:
        if several := several_named(asked, questions):
            raise DataError(f"{source.name}: {several}")
        close = difflib.get_close_matches(asked, questions, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {listed(questions)}."
        raise DataError(f"{source.name} has no labels for {asked!r}; {hint}")
    if len(questions) > 1:
        raise SeveralQuestionsError(source.name, questions, forms)
    return questions[0]
