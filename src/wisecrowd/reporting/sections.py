"""Sections of the page in order: parts of the summary with charts and templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wisecrowd.audit.plans import load
from wisecrowd.core.kinds import LABELS
from wisecrowd.reporting import charts
from wisecrowd.reporting.plans import plan_of_kind
from wisecrowd.reporting.summary import Summary

Data = Mapping[str, Any]


@dataclass(frozen=True)
class Section:
    """One section: its anchor, heading, template data and template, by default that of its id."""

    id: str
    title: str
    data: Data
    own_template: str = ""

    @property
    def template(self) -> str:
        """Name of the template."""
        return f"{self.own_template or self.id}.html.jinja"


def sections_of(summary: Summary) -> list[Section]:
    """Return the sections of a page: those in the summary; a section without data states that."""
    table = load(plan_of_kind(summary.get("kind", LABELS)).sections)
    return [
        Section(name, title, {"d": summary[name], **build(summary)}, *template)
        for name, (title, build, *template) in table.items()
        if name in summary
    ]


def _nothing(summary: Summary) -> Data:
    return {}


def _next(summary: Summary) -> Data:
    urgent = [step for step in summary["next"] if step["severity"] != "info"]
    rest = [step for step in summary["next"] if step["severity"] == "info"]
    return {"urgent": urgent, "rest": rest}


def _workers(summary: Summary) -> Data:
    rows = summary["workers"]["rows"]
    kinds = sorted({flag for row in rows for flag in row["flags"]})
    return {
        "chart": charts.quality_against_volume(rows),
        "flags": kinds,
        "has_kind": any(row["kind"] is not None for row in rows),
        "has_kappa": any(row["kappa"] is not None for row in rows),
        "sparkline": charts.sparkline,
    }


def _tasks(summary: Summary) -> Data:
    levels = [(row["name"], row["count"]) for row in summary["tasks"]["levels"]]
    says = "Number of tasks by the share of their most common label."
    return {"chart": charts.columns(levels, says, "share of the most common label", "tasks")}


def _network(summary: Summary) -> Data:
    graph = summary["network"].get("graph")
    return {"chart": None if graph is None else charts.network_drawing(graph)}


def _calibration(summary: Summary) -> Data:
    found = summary["calibration"]
    return {"chart": None if found is None else charts.reliability(found["rows"])}


def _budget(summary: Summary) -> Data:
    found = summary["budget"]
    return {
        "chart": None if found is None else charts.budget_curve(found["points"], found["now"]),
        "n_tasks": summary["verdict"]["n_tasks"],
    }


def _health(summary: Summary) -> Data:
    bars = [(bar["name"], bar["count"]) for bar in summary["health"]["bars"]]
    says = "Number of tasks by their number of labels."
    several = len(bars) > 1  # a single bar is not informative
    return {"chart": charts.columns(bars, says, "labels", "tasks") if several else None}


# Name in the summary and of the template → heading, and additional data for the template.
SECTIONS: dict[str, tuple[str, Callable[[Summary], Data]]] = {
    "verdict": ("Verdict", _nothing),
    "next": ("Next steps", _next),
    "workers": ("Workers", _workers),
    "tasks": ("Tasks people disagree about", _tasks),
    "classes": ("Confused classes", _nothing),
    "groups": ("Groups of tasks", _nothing),
    "worker_groups": ("Groups of workers", _nothing),
    "network": ("Agreement network and suspected collusion", _network),
    "methods": ("Comparison of methods", _nothing),
    "calibration": ("Calibration", _calibration),
    "budget": ("Value of more labels", _budget),
    "health": ("Data health", _health),
    "reproduce": ("How to reproduce this report", _nothing),
}
