"""Sections of the pages on other kinds than classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wisecrowd.reporting import kind_charts
from wisecrowd.reporting.charts import Chart
from wisecrowd.reporting.sections import SECTIONS, Data, health_data, worker_data
from wisecrowd.reporting.summary import Summary


def _nothing(summary: Summary) -> Data:
    return {}


def of_workers(draw: Callable[[Sequence[dict[str, Any]]], Chart | None]) -> Callable[[Summary], Data]:
    """Return the function that adds a chart of workers to the data of their table."""

    def build(summary: Summary) -> Data:
        found = worker_data(summary)
        return {**found, "chart": draw(found["rows"])}

    return build


def _ranking(summary: Summary) -> Data:
    return {"chart": kind_charts.scores_by_rank(summary["ranking"]["rows"])}


def _bias(summary: Summary) -> Data:
    return {"chart": kind_charts.bias_by_worker(summary["bias"]["rows"])}


# Name in the summary → heading, additional data for the template, and the template.
_NEXT = SECTIONS["next"]
_REPRODUCE = SECTIONS["reproduce"]
NUMBER_SECTIONS = {
    "verdict": ("Verdict", _nothing, "number_verdict"),
    "next": _NEXT,
    "workers": ("Workers: bias and noise", of_workers(kind_charts.bias_and_noise), "number_workers"),
    "tasks": ("Tasks people disagree about", _nothing, "number_tasks"),
    "shared": ("Shared errors", _nothing, "shared_errors"),
    "methods": ("Comparison of methods", _nothing, "held_out"),
    "health": ("Data health", health_data, "answer_health"),
    "reproduce": _REPRODUCE,
}
PAIR_SECTIONS = {
    "verdict": ("Verdict", _nothing, "pair_verdict"),
    "next": _NEXT,
    "ranking": ("Ranking", _ranking),
    "workers": ("Workers", of_workers(kind_charts.reliability_of_voters), "pair_workers"),
    "sides": ("Sides and ties", _nothing),
    "contradictions": ("Contradictions and cycles", _nothing),
    "connectivity": ("Connectivity", _nothing),
    "methods": ("Comparison of methods", _nothing, "held_out"),
    "health": ("Data health", health_data, "answer_health"),
    "reproduce": _REPRODUCE,
}
SET_SECTIONS = {
    "verdict": ("Verdict", _nothing, "set_verdict"),
    "next": _NEXT,
    "workers": ("Workers: sensitivity and false alarms", of_workers(kind_charts.rates_of_workers), "set_workers"),
    "classes": ("Classes", _nothing, "set_classes"),
    "tasks": ("Tasks people disagree about", _nothing, "set_tasks"),
    "methods": ("Comparison of methods", _nothing, "held_out"),
    "health": ("Data health", health_data, "answer_health"),
    "reproduce": _REPRODUCE,
}
TEXT_SECTIONS = {
    "verdict": ("Verdict", _nothing, "text_verdict"),
    "next": _NEXT,
    "workers": ("Workers", of_workers(kind_charts.error_rates), "text_workers"),
    "tasks": ("Tasks people disagree about", _nothing, "text_tasks"),
    "methods": ("Comparison of methods", _nothing, "held_out"),
    "health": ("Data health", health_data, "answer_health"),
    "reproduce": _REPRODUCE,
}
ORDERED_SECTIONS = {
    **{name: section for name, section in SECTIONS.items()
       if name not in ("calibration", "budget", "health", "reproduce")},
    "bias": ("Lenient and harsh workers", _bias, "grader_bias"),
    "health": SECTIONS["health"],
    "reproduce": _REPRODUCE,
}  # fmt: skip
SEQUENCE_SECTIONS = {
    "verdict": ("Verdict", _nothing, "span_verdict"),
    "next": _NEXT,
    "boundaries": ("Boundaries and types", _nothing),
    "workers": ("Workers", of_workers(kind_charts.agreement_on_spans), "span_workers"),
    "tasks": ("Tasks people disagree about", _nothing, "span_tasks"),
    "methods": ("Comparison of methods", _nothing, "held_out"),
    "health": ("Data health", health_data, "answer_health"),
    "reproduce": _REPRODUCE,
}
BOX_SECTIONS = {
    "verdict": ("Verdict", _nothing, "box_verdict"),
    "next": _NEXT,
    "workers": (
        "Workers: missed and phantom boxes, bias of sides",
        of_workers(kind_charts.detection_of_workers), "box_workers",
    ),
    "tasks": ("Images people disagree about", _nothing, "box_images"),
    "copies": ("Equal boxes", _nothing, "box_copies"),
    "methods": ("Comparison of methods", _nothing, "held_out"),
    "health": ("Data health", health_data, "answer_health"),
    "reproduce": _REPRODUCE,
}
