"""Changes between two reports on the same crowd, such as last week's and today's."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds import LABELS

SCHEMA = "wisecrowd-report"
VERSION = 2  # increased when a name or a meaning changes, but not for new names

# The value of a worker that has an interval from ``low`` to ``high``, by kind.
WORKER_VALUES = {
    LABELS: "accuracy", "sequences": "agreement", "boxes": "detection",
    "masks": "ratio", "texts": "error_rate",
}  # fmt: skip
_SAME = 1e-9  # relative difference that is rounding

Summary = Mapping[str, Any]


def read_summary(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the summary of an earlier report from a JSON file.

    Raises
    ------
    DataError
        If the file cannot be read, or is not a summary of this version.
    """
    try:
        with open(path, encoding="utf-8") as stream:
            summary = json.load(stream)
    except OSError as error:
        raise DataError(f"Cannot read {os.fspath(path)}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{os.fspath(path)} is not JSON; give a summary that wisecrowd report --json wrote."
        ) from error
    require_summary(summary, os.fspath(path))
    found: dict[str, Any] = summary
    return found


def require_summary(summary: Any, name: str) -> None:
    """Raise a DataError if a value is not the summary of a report of this version."""
    if not isinstance(summary, dict) or summary.get("schema") != SCHEMA:
        raise DataError(
            f"{name} is not the summary of a report; give what wisecrowd report --json wrote."
        )
    if summary.get("version") != VERSION:
        raise DataError(
            f"{name} has version {summary.get('version')!r} of the summary, and this is version "
            f"{VERSION}; make the earlier report again."
        )
    steps, workers = summary.get("next"), summary.get("workers")
    sound = (
        isinstance(summary.get("verdict"), dict)
        and isinstance(steps, list)
        and all(isinstance(s, dict) and {"id", "severity", "affected"} <= set(s) for s in steps)
        and isinstance(workers, dict | None)
        and all(isinstance(row, dict) and "worker" in row for row in _rows(summary))
    )
    if not sound:
        raise DataError(f"{name} is damaged; make the earlier report again.")


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of the summary that ``wisecrowd report --json`` writes.

    Examples
    --------
    >>> report_schema()["properties"]["version"]
    {'const': 2}
    """
    text = files("wisecrowd.reporting").joinpath("report.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def changes_since(old: Summary, new: Summary) -> dict[str, Any]:
    """Return what changed between two reports: numbers, findings and workers.

    A number counts as clearly changed if its intervals in the two reports do not overlap.

    Parameters
    ----------
    old, new : summaries of reports on the same kind of labels

    Returns
    -------
    dict
        ``since``, when the old report was made; ``numbers``, ``findings`` (``new``, ``gone`` and
        ``kept``), ``workers`` (``new``, ``gone`` and ``changed``).

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> from wisecrowd.reporting.document import summarize
    >>> crowd = simulate.crowd(60, 6 * simulate.OneCoinWorkers(8, 2), n_classes=3).labels
    >>> changes = changes_since(summarize(crowd[:40]), summarize(crowd))
    >>> [row["name"] for row in changes["numbers"] if row["name"].startswith("n_")]
    ['n_tasks', 'n_labels']
    """
    kinds = [summary.get("kind", LABELS) for summary in (old, new)]
    if kinds[0] != kinds[1]:
        raise DataError(
            f"The earlier report is about {kinds[0]}, and this one about {kinds[1]}; compare "
            "reports on the same type of labels."
        )
    return {
        "since": old.get("reproduce", {}).get("created"),
        "title": str(old.get("title", "")),
        "numbers": list(_changed_numbers(old["verdict"], new["verdict"])),
        "findings": _changed_findings(old["next"], new["next"]),
        "workers": _changed_workers(old, new, WORKER_VALUES.get(kinds[0])),
    }


def _changed_numbers(old: Summary, new: Summary) -> Iterator[dict[str, Any]]:
    """Yield the numbers and words of the verdict that differ, in the order of the verdict."""
    for name in new:
        before, after = old.get(name), new[name]
        one, other = _value(before), _value(after)
        if one is None or other is None or _equal(one, other):
            continue
        yield {"name": name, "before": one, "after": other, "clear": _disjoint(before, after)}


def _value(entry: Any) -> Any:
    """Return the number, or word, of an entry of the verdict."""
    if isinstance(entry, Mapping):
        entry = entry.get("value", entry.get("total"))
    return entry if isinstance(entry, int | float | str) else None


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    return bool(abs(one - other) <= _SAME * max(abs(one), abs(other)))


def _disjoint(before: Any, after: Any) -> bool | None:
    """Return whether two intervals do not overlap; None if there are not two."""
    one, other = _ends(before), _ends(after)
    if one is None or other is None:
        return None
    return bool(one[1] < other[0] or other[1] < one[0])


def _ends(entry: Any) -> tuple[float, float] | None:
    if not isinstance(entry, Mapping):
        return None
    low, high = entry.get("low"), entry.get("high")
    return (low, high) if isinstance(low, int | float) and isinstance(high, int | float) else None


def _changed_findings(old: Any, new: Any) -> dict[str, list[dict[str, Any]]]:
    """Return findings that appeared, disappeared or stayed; findings for information count too."""
    before, after = _by_id(old), _by_id(new)
    kept = []
    for name in after:
        if name in before:
            was, now = before[name], after[name]
            kept.append(
                {
                    "id": name, "before": was["severity"], "severity": now["severity"],
                    "added": [x for x in now["affected"] if x not in was["affected"]],
                }
            )  # fmt: skip
    return {
        "new": [_short(after[name]) for name in after if name not in before],
        "gone": [_short(before[name]) for name in before if name not in after],
        "kept": kept,
    }


def _by_id(steps: Any) -> dict[str, Any]:
    """Return findings by id; of several with the same id, the most severe, which comes first."""
    found: dict[str, Any] = {}
    for step in steps:
        found.setdefault(str(step["id"]), step)
    return found


def _short(step: Mapping[str, Any]) -> dict[str, Any]:
    return {name: step.get(name, "") for name in ("id", "severity", "explanation")}


def _rows(summary: Summary) -> list[Any]:
    rows = (summary.get("workers") or {}).get("rows", [])
    return rows if isinstance(rows, list) else [rows]


def _changed_workers(old: Summary, new: Summary, value: str | None) -> dict[str, Any]:
    """Return workers who came, left, were flagged or changed clearly.

    A worker counts as new or gone only if the other report shows all workers.
    """
    before, after = ({row["worker"]: row for row in _rows(summary)} for summary in (old, new))
    both = [name for name in after if name in before]
    changed = []
    for name in both:
        was, now = before[name], after[name]
        flags = [flag for flag in now.get("flags", []) if flag not in was.get("flags", [])]
        clear = value is not None and _disjoint(was, now) is True
        if flags or clear:
            changed.append(
                {
                    "worker": name, "flags": flags, "value": value if clear else None,
                    "before": was.get(value) if clear else None,
                    "after": now.get(value) if clear else None,
                }
            )  # fmt: skip
    return {
        "new": [name for name in after if name not in before] if _complete(old) else None,
        "gone": [name for name in before if name not in after] if _complete(new) else None,
        "changed": changed,
    }


def _complete(summary: Summary) -> bool:
    workers = summary.get("workers") or {}
    return bool(workers.get("n_shown") == workers.get("total") and not workers.get("n_withheld", 0))
