"""Renderer of sections to one self-contained HTML file, from templates with escaping on."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from wisecrowd.core.exceptions import MissingDependencyError
from wisecrowd.reporting import text
from wisecrowd.reporting.sections import sections_of
from wisecrowd.reporting.summary import Summary
from wisecrowd.reporting.task_examples import relabel_rows

# Data for programs that the page contains; tables are only in the summary.
CARRIED = ("schema", "version", "title", "verdict", "next", "reproduce")


def render(summary: Summary, tables: dict[str, str] | None = None) -> str:
    """Render a summary as a page.

    Parameters
    ----------
    summary : dict
        Result of :func:`wisecrowd.reporting.summarize`, or the same read from JSON.
    tables : dict, optional
        Names of files with complete tables that the page truncates: "workers", "tasks".
    """
    environment = _environment()
    style, script = _source("style.css"), _source("script.js")
    page: str = environment.get_template("page.html.jinja").render(
        summary=summary,
        sections=sections_of(summary),
        tables=tables or {},
        style=_raw(style),
        script=_raw(script),
        policy=content_policy(style, script),
        carried=_raw(embedded_json(_carried(summary))),
    )
    return page


def _carried(summary: Summary) -> dict[str, Any]:
    found: dict[str, Any] = _cut({name: summary[name] for name in CARRIED})
    rows = relabel_rows(summary)
    return found if rows is None else {**found, "relabel": rows}


def content_policy(style: str, script: str) -> str:
    """Return a content security policy that allows only this style and this script."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def embedded_json(value: Any) -> str:
    r"""Return JSON that is safe inside a script element: no text in it can end the element.

    Examples
    --------
    >>> print(embedded_json({"id": "</script><!--"}))
    {"id":"\u003c/script\u003e\u003c!--"}
    """
    plain = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        plain = plain.replace(character, f"\\u{ord(character):04x}")
    return plain


def _cut(value: Any) -> Any:
    """Shorten the texts in plain data to the maximum length of a sentence."""
    if isinstance(value, str):
        return text.shorten(value, text.SENTENCE)
    if isinstance(value, dict):
        return {_cut(key): _cut(item) for key, item in value.items()}
    return [_cut(item) for item in value] if isinstance(value, list) else value


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _source(name: str) -> str:
    return files("wisecrowd.reporting").joinpath("templates", name).read_text(encoding="utf-8")


def _raw(content: str) -> Any:
    """Mark trusted text as safe: our own files and escaped JSON, and nothing else."""
    from markupsafe import Markup

    return Markup(content)


def _environment() -> Any:
    try:
        import jinja2
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "The report needs jinja2; install it with pip install 'wisecrowd[report]'."
        ) from None
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": text.count,
        "number": text.number,
        "heat": lambda percent: f"h{min(10, round(percent / 10))}",
        "percent": text.percent,
        "shorten": text.shorten,
        "sentence": lambda value: text.shorten(value, text.SENTENCE),
        "tooltip": lambda value: text.shorten(value, text.TITLE),
    }
    environment.globals["short"] = text.SHORT
    return environment
