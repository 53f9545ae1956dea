"""Reports: a summary as plain data, its sections, and one self-contained HTML file."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Public name → module, loaded on first use.
LOCATIONS = {
    "Report": "document",
    "report": "document",
    "report_schema": "changes",
    "summarize": "summary",
}

if TYPE_CHECKING:
    from wisecrowd.reporting.changes import report_schema as report_schema
    from wisecrowd.reporting.document import Report as Report
    from wisecrowd.reporting.document import report as report
    from wisecrowd.reporting.summary import summarize as summarize


def __getattr__(name: str) -> Any:
    if name in LOCATIONS:
        return getattr(importlib.import_module(f"wisecrowd.reporting.{LOCATIONS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(LOCATIONS)
