"""Sections of the pages on other kinds than classes."""

from __future__ import annotations

from typing import Any

from wisecrowd.reporting import charts, kind_charts
from wisecrowd.reporting.sections import SECTIONS, Data
from wisecrowd.reporting.summary import Summary


def _nothing(summary: Summary) -> Data:
    return {}


def _flags(summary: Summary) -> dict[str, Any]:
    rows = summary["workers"]["rows"]
    return {
        "flags": sorted({flag for row in rows for flag in row["flags"]}),
        "has_kind": any(row["kind"] is not None for row in rows),
    }


def _number_workers(summary: Summary) -> Data:
    rows = summary["workers"]["rows"]
    return {"chart": kind_charts.bias_and_noise(rows), **_flags(summary)}


def _pair_workers(summary: Summary) -> Data:
    rows = summary["workers"]["rows"]
    return {"chart": kind_charts.reliability_of_voters(rows), **_flags(summary)}


def _span_workers(summary: Summary) -> Data:
    rows = summary["workers"]["rows"]
    return {"chart": kind_charts.agreement_on_spans(rows), **_flags(summary)}


def _box_workers(summary: Summary) -> Data:
    rows = summary["workers"]["rows"]
    return {"chart": kind_charts.detection_of_workers(rows), **_flags(summary)}


def _text_workers(summary: Summary) -> Data:
    rows = summary["workers"]["rows"]
    return {"chart": kind_charts.error_rates(rows), **_flags(summary)}


def _ranking(summary: Summary) -> Data:
    return {"chart": kind_charts.scores_by_rank(summary["ranking"]["rows"])}


def _bias(summary: Summary) -> Data:
    return {"chart": kind_charts.bias_by_worker(summary["bias"]["rows"])}


def _set_workers(summary: Summary) -> Data:
    rows = summary["workers"]["rows"]
    return {"chart": kind_charts.rates_of_workers(rows), **_flags(summary)}


def _health(summary: Summary) -> Data:
    bars = [(bar["name"], bar["count"]) for bar in summary["health"]["bars"]]
    says = "Number of tasks by their number of labels."
    several = len(bars) > 1  # a single bar is not informative
    return {"chart": charts.columns(bars, says, "labels", "tasks") if several else None}


# Name in the summary → heading, additional data for the template, and the template.
_NEXT = SECTIONS["next"]
_REPRODUCE = SECTIONS["reproduce"]
NUMBER_SECTIONS = {
    "verdict": ("Verdict", _nothing, "number_verdict"),
    "next": _NEXT,
    "workers": ("Workers: bias and noise", _number_workers, "number_workers"),
    "tasks": ("Tasks people disagree about", _nothing, "number_tasks"),
    "shared": ("Shared errors", _nothing, "shared_errors"),
    "methods": ("Comparison of methods", _nothing, "held_out"),
    "health": ("Data health", _health, "answer_health"),
    "reproduce": _REPRODUCE,
}
PAIR_SECTIONS = {
    "verdict": ("Verdict", _nothing, "pair_verdict"),
    "next": _NEXT,
    "ranking": ("Ranking", _ranking),
    "workers": ("Workers", _pair_workers, "pair_workers"),
    "sides": ("Sides and ties", _nothing),
    "contradictions": ("Contradictions and cycles", _nothing),
    "connectivity": ("Connectivity", _nothing),
    "methods": ("Comparison of methods", _nothing, "held_out"),
    "health": ("Data health", _health, "answer_health"),
    "reproduce": _REPRODUCE,
}
SET_SECTIONS = {
    "verdict": ("Verdict", _nothing, "set_verdict"),
    "next": _NEXT,
    "workers": ("Workers: sensitivity and false alarms", _set_workers, "set_workers"),
    "classes": ("Classes", _nothing, "set_classes"),
    "tasks": ("Tasks people disagree about", _nothing, "set_tasks"),
    "methods": ("Comparison of methods", _nothing, "held_out"),
    "health": ("Data health", _health, "answer_health"),
    "reproduce": _REPRODUCE,
}
TEXT_SECTIONS = {
    "verdict": ("Verdict", _nothing, "text_verdict"),
    "next": _NEXT,
    "workers": ("Workers", _text_workers, "text_workers"),
    "tasks": ("Tasks people disagree about", _nothing, "text_tasks"),
    "methods": ("Comparison of methods", _nothing, "held_out"),
    "health": ("Data health", _health, "answer_health"),
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
    "workers": ("Workers", _span_workers, "span_workers"),
    "tasks": ("Tasks people disagree about", _nothing, "span_tasks"),
    "methods": ("Comparison of methods", _nothing, "held_out"),
    "health": ("Data health", _health, "answer_health"),
    "reproduce": _REPRODUCE,
}
BOX_SECTIONS = {
    "verdict": ("Verdict", _nothing, "box_verdict"),
    "next": _NEXT,
    "workers": ("Workers: missed and phantom boxes, bias of sides", _box_workers, "box_workers"),
    "tasks": ("Images people disagree about", _nothing, "box_images"),
    "copies": ("Equal boxes", _nothing, "box_copies"),
    "methods": ("Comparison of methods", _nothing, "held_out"),
    "health": ("Data health", _health, "answer_health"),
    "reproduce": _REPRODUCE,
}
