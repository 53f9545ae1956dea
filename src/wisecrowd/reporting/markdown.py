"""Summary of a report as Markdown, for comments on pull requests and logs of pipelines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wisecrowd.core.kinds import get_kind
from wisecrowd.kinds import LABELS
from wisecrowd.reporting.display import SENTENCE, SHORT, count, number, percent, shorten, shown

MOST_FINDINGS = 10
MOST_WORKERS = 10
AGREEMENT = "agreement with the result"
# Names of the verdict in words; others are their own words.
WORDS = {
    "n_labels": "labels", "n_tasks": "tasks", "n_workers": "workers", "n_classes": "classes",
    "n_items": "items", "measured": "accuracy by known answers",
    "agreement": "agreement", "certain": "share of confident labels", "spend": "cost",
    "n_unlabelled": "tasks without labels",
}  # fmt: skip
SHARES = {
    "mean_agreement",
    "mean_confidence",
    "measured",
    "certain",
    "confidence",
    "detection",
}  # shown as percentages
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|~$])")


def markdown_of(summary: Mapping[str, Any]) -> str:
    """Return the summary of a report as GitHub-flavoured Markdown.

    Ids and labels are text of strangers: markup in them has no effect, and nobody is mentioned.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> from wisecrowd.reporting.document import summarize
    >>> crowd = simulate.crowd(60, 6 * simulate.OneCoinWorkers(8, 2), n_classes=3)
    >>> print(markdown_of(summarize(crowd.labels)).splitlines()[0])
    ## Crowd report
    """
    parts = [f"## {escaped(summary['title'])}", _verdict(summary)]
    if "changes" in summary:
        parts.append(_changes(summary["changes"]))
    parts += [_findings(summary["next"]), _workers(summary)]
    made = summary["reproduce"]
    parts.append(f"Made by wisecrowd {escaped(made['wisecrowd'])} on {escaped(made['created'])}.")
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(value: Any, limit: int = SENTENCE) -> str:
    r"""Return text in which Markdown, HTML and mentions have no effect.

    Examples
    --------
    >>> print(escaped("a_b|<i>"))
    a\_b\|&lt;i&gt;
    """
    text = " ".join(shorten(shown(value), limit).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _MARKUP.sub(r"\\\1", text)
    return re.sub(r"@(?=\w)|(?<=://)|(?<=www)(?=\.)", "\\g<0>\u2060", text)  # no mentions, no links


def _verdict(summary: Mapping[str, Any]) -> str:
    rows = []
    for name, entry in summary["verdict"].items():
        if name in ("context", "measured"):  # a sentence says it
            continue
        text = _shown_entry(name, entry)
        if text is not None:
            rows.append((WORDS.get(name, name.replace("_", " ")), text))
    return "\n\n".join([*_claim(summary["verdict"]), _table(("", ""), rows)])


def _claim(verdict: Mapping[str, Any]) -> Iterable[str]:
    """Yield what is right by known answers or, without any, what the confidence means."""
    measured = verdict.get("measured")
    if measured and "text" in measured:
        yield measured["text"]
    elif "context" in verdict:
        mean = verdict.get("mean_confidence")
        lead = "" if mean is None else f"Mean confidence {percent(mean, 0)}. "
        yield lead + verdict["context"]


def _shown_entry(name: str, entry: Any) -> str | None:
    """Return a number of the verdict with its interval, or None if there is none."""
    if isinstance(entry, Mapping):
        value = entry.get("value", entry.get("total"))
        if not isinstance(value, int | float):
            return None
        text = shown_value(name, value)
        if isinstance(entry.get("low"), int | float):
            ends = [shown_value(name, entry[end]) for end in ("low", "high")]
            text += f" ({ends[0]} to {ends[1]})"
        return text
    return None if entry is None else shown_value(name, entry)


def shown_value(name: str, value: Any) -> str:
    """Return a value of the verdict as text: a share, a count, a number or a word.

    Examples
    --------
    >>> shown_value("certain", 0.25), shown_value("noise", 0.25), shown_value("method", "auto")
    ('25.0 %', '0.25', 'auto')
    """
    if isinstance(value, str):
        return escaped(value, SHORT)
    if name in SHARES:
        return percent(value)
    return count(value) if isinstance(value, int) else number(value)


def _findings(steps: Sequence[Mapping[str, Any]]) -> str:
    urgent = [step for step in steps if step["severity"] != "info"]
    if not urgent:
        return "### Findings\n\nThe audit found no problem."
    lines = ["### Findings", ""]
    for step in urgent[:MOST_FINDINGS]:
        lines += [
            f"- **{escaped(step['severity'])}: {escaped(step['id'])}.** "
            f"{escaped(step['explanation'])} {escaped(step['remedy'])}".rstrip()
        ]
        if step.get("command"):
            lines += [f"  {_code(step['command'])}"]
    more = len(urgent) - MOST_FINDINGS
    return "\n".join([*lines, *([f"- and {more} more"] if more > 0 else [])])


def _workers(summary: Mapping[str, Any]) -> str:
    rows = (summary.get("workers") or {}).get("rows", [])
    flagged = [row for row in rows if row.get("flags")]
    if not flagged:
        return ""
    of_classes = get_kind(summary.get("kind", LABELS)).usual
    header = ("worker", "labels", "findings", *([AGREEMENT] if of_classes else []))
    body = [
        (
            escaped(row["worker"], SHORT), count(row["n_labels"]),
            escaped(", ".join(row["flags"])),
            *([percent(row.get("agreement_with_result"), 0)] if of_classes else []),
        )
        for row in flagged[:MOST_WORKERS]
    ]  # fmt: skip
    more = len(flagged) - MOST_WORKERS
    rest = f"\n\nand {more} more" if more > 0 else ""
    return f"### Workers with findings\n\n{_table(header, body)}{rest}"


def _changes(changes: Mapping[str, Any]) -> str:
    """Return what changed since the earlier report."""
    lines = [f"### Since the report of {escaped(changes['since'] or 'unknown date')}", ""]
    for row in changes["numbers"]:
        name = WORDS.get(row["name"], row["name"].replace("_", " "))
        before, after = (shown_value(row["name"], row[when]) for when in ("before", "after"))
        doubt = " (the intervals overlap)" if row["clear"] is False else ""
        lines.append(f"- {escaped(name)}: {before} → {after}{doubt}")
    findings = changes["findings"]
    for what, words in (("new", "new finding"), ("gone", "no longer found")):
        lines += [
            f"- {words}: {escaped(step['id'])} ({escaped(step['severity'])})"
            for step in findings[what]
        ]
    for one in changes["workers"]["changed"]:
        flags = f"now {escaped(', '.join(one['flags']))}" if one["flags"] else ""
        moved = (
            f"{escaped(one['value'].replace('_', ' '))} {number(one['before'])} → "
            f"{number(one['after'])}"
            if one["value"]
            else ""
        )
        told = "; ".join(filter(None, (flags, moved)))
        lines.append(f"- worker {escaped(one['worker'], SHORT)}: {told}")
    return "\n".join(lines if len(lines) > 2 else [*lines, "Nothing changed."])


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(command: str) -> str:
    """Return a command as code; the fence is longer than any run of backticks in it."""
    text = " ".join(shown(command).split("\n"))
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if "`" in text else f"`{text}`"
