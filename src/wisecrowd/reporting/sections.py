"""Sections of the page in order: parts of the summary with charts and templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wisecrowd.kinds import LABELS
from wisecrowd.reporting import charts
from wisecrowd.reporting.markdown import WORDS, shown_value
from wisecrowd.reporting.network import network_drawing
from wisecrowd.reporting.plans import plan_of_kind

Summary = dict[str, Any]  # the content of a report
Data = Mapping[str, Any]

# Names of sections in the navigation, if the title is longer than a word or two.
SHORT = {
    "verdict": "Verdict", "next": "Next steps", "workers": "Workers", "tasks": "Tasks",
    "classes": "Classes", "groups": "Groups", "worker_groups": "Worker groups",
    "network": "Network", "methods": "Methods", "calibration": "Calibration",
    "budget": "More labels", "money": "Money", "health": "Data", "reproduce": "Reproduce",
    "bias": "Bias", "shared": "Shared errors", "sides": "Sides", "boundaries": "Boundaries",
    "copies": "Copies", "contradictions": "Contradictions", "connectivity": "Connectivity",
    "judge_cards": "Verdicts", "judge_agreement": "Agreement", "judge_dependence": "Dependence",
    "judge_classes": "Classes", "judge_sides": "Sides",
}  # fmt: skip


@dataclass(frozen=True)
class Section:
    """One section: its anchor, heading, template data and template, by default that of its id."""

    id: str
    title: str
    data: Data
    own_template: str = ""

    @property
    def short(self) -> str:
        """Name in the navigation."""
        return SHORT.get(self.id, self.title)

    @property
    def n_found(self) -> int:
        """Number of findings in the section, which the navigation shows."""
        if self.id == "next":
            return len(self.data["urgent"])
        return int(self.data["d"]["n_flagged"]) if self.id == "workers" else 0

    @property
    def template(self) -> str:
        """Name of the template."""
        return f"{self.own_template or self.id}.html.jinja"


def sections_of(summary: Summary) -> list[Section]:
    """Return the sections of a page: those in the summary; a section without data states that."""
    table = plan_of_kind(summary.get("kind", LABELS)).sections
    found = [
        Section(name, title, {"d": summary[name], **build(summary)}, *template)
        for name, (title, build, *template) in table.items()
        if name in summary
    ]
    if "changes" in summary:  # of every kind, after the verdict
        data = {"d": summary["changes"], "numbers": _changed_numbers(summary)}
        found.insert(1, Section("changes", "Since the last report", data))
    return found


def _changed_numbers(summary: Summary) -> list[Data]:
    """Return the rows of numbers that changed, as text."""
    return [
        {
            "words": WORDS.get(row["name"], row["name"].replace("_", " ")),
            "before": shown_value(row["name"], row["before"]),
            "after": shown_value(row["name"], row["after"]),
            "clear": row["clear"],
        }
        for row in summary["changes"]["numbers"]
    ]


def _nothing(summary: Summary) -> Data:
    return {}


def _next(summary: Summary) -> Data:
    urgent = [step for step in summary["next"] if step["severity"] != "info"]
    rest = [step for step in summary["next"] if step["severity"] == "info"]
    return {"urgent": urgent, "rest": rest}


def worker_data(summary: Summary) -> dict[str, Any]:
    """Return the rows of workers with their colours, and what the table of workers needs."""
    tones = {s["id"]: "bad" if s["severity"] == "high" else "warn" for s in summary["next"]}
    rows = []
    for row in summary["workers"]["rows"]:
        own = {tones.get(flag, "warn") for flag in row["flags"]}
        rows.append({**row, "tone": min(own, default="")})  # bad before warn
    kinds = [row["kind"] for row in rows]
    return {
        "rows": rows,
        "tones": tones,
        "has_kind": any(kind is not None for kind in kinds),
        "kinds": sorted({kind for kind in kinds if kind}) if len(set(kinds)) > 1 else [],
    }


def _workers(summary: Summary) -> Data:
    found = worker_data(summary)
    guessing = 1 / max(summary["verdict"]["n_classes"], 1)
    return {
        **found,
        "chart": charts.quality_against_volume(found["rows"], guessing),
        "has_kappa": any(row["kappa"] is not None for row in found["rows"]),
        "sparkline": charts.sparkline,
    }


def task_data(summary: Summary) -> dict[str, Any]:
    """Return the workers with findings, who are marked in the votes."""
    return {"flagged": {row["worker"] for row in summary["workers"]["rows"] if row["flags"]}}


def nothing(summary: Summary) -> Data:
    """Return no data: the template needs the content alone."""
    return {}


def of_workers(
    draw: Callable[[Sequence[dict[str, Any]]], charts.Chart | None],
) -> Callable[[Summary], Data]:
    """Return the function that adds a chart of workers to the data of their table."""

    def build(summary: Summary) -> Data:
        found = worker_data(summary)
        return {**found, "chart": draw(found["rows"])}

    return build


def _tasks(summary: Summary) -> Data:
    levels = [(row["name"], row["count"]) for row in summary["tasks"]["levels"]]
    says = "Number of tasks by the share of their most common label."
    drawn = charts.columns(levels, says, "share of the most common label", "tasks")
    return {"chart": drawn, **task_data(summary)}


def _network(summary: Summary) -> Data:
    graph = summary["network"].get("graph")
    return {"chart": None if graph is None else network_drawing(graph)}


def _calibration(summary: Summary) -> Data:
    found = summary["calibration"]
    return {"chart": None if found is None else charts.reliability(found["rows"])}


def _budget(summary: Summary) -> Data:
    found = summary["budget"]
    return {
        "chart": None if found is None else charts.budget_curve(found["points"], found["now"]),
        "n_tasks": summary["verdict"]["n_tasks"],
        "measured": summary["verdict"]["measured"],
    }


def health_data(summary: Summary) -> Data:
    """Return the chart of tasks by their number of labels."""
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
    "money": ("Money and time", _nothing),
    "health": ("Data health", health_data),
    "reproduce": ("How to reproduce this report", _nothing),
}
