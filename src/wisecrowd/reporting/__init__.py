"""Reports: a summary as plain data, its sections, and one self-contained HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

NAMES = ("Report", "report", "report_schema", "summarize")  # loaded on first use

if TYPE_CHECKING:
    from wisecrowd.reporting.changes import report_schema as report_schema
    from wisecrowd.reporting.document import Report as Report
    from wisecrowd.reporting.document import report as report
    from wisecrowd.reporting.document import summarize as summarize


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from wisecrowd.reporting import changes, document

    return getattr(changes if hasattr(changes, name) else document, name)


def __dir__() -> list[str]:
    return list(NAMES)
