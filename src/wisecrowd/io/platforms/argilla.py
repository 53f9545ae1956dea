"""Argilla 2: ``records.to_json()``, and the flattened columns of ``records.to_datasets()``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from wisecrowd.io.formats import Request
from wisecrowd.io.inventory import MODEL
from wisecrowd.io.platforms import CHOSEN, Platform
from wisecrowd.io.platforms.answer_forms import CHOICES, LIST, RANKING, RATING, Ranking
from wisecrowd.io.platforms.hugging_face import rows_of
from wisecrowd.io.platforms.label_records import (
    Dropped,
    Event,
    LabelRecord,
    mapping,
    mappings,
    model_worker,
    reader,
)
from wisecrowd.io.platforms.values import number_of
from wisecrowd.io.sources import Source
from wisecrowd.kinds import PAIRS

_RESPONSES = ".responses"


@reader
def read(source: Source, request: Request) -> Iterator[Event]:
    """Yield submitted responses, and suggestions as workers of kind "model"."""
    rows = rows_of(source, request)
    first = next(rows, {})
    nested = isinstance(first.get("responses"), dict)
    if nested:
        request.inventory.remark(
            "this export has no status: drafts and discarded responses count like submitted ones"
        )
    yield from (_nested if nested else _flattened)(chain([first], rows))


PLATFORM = Platform(read, "id", "responses.user_id", "responses.value", kinds=(*CHOSEN, PAIRS))


def _nested(records: Iterable[dict[str, Any]]) -> Iterator[Event]:
    for record in records:
        task = record.get("id")
        for question, responses in mapping(record.get("responses")).items():
            for response in mappings(responses):
                yield _judged(task, response.get("user_id"), response.get("value"), question)
        for question, made in mapping(record.get("suggestions")).items():
            if isinstance(made, dict):
                worker = model_worker(made.get("agent"))
                yield _judged(task, worker, made.get("value"), question, MODEL)


def _flattened(records: Iterable[dict[str, Any]]) -> Iterator[Event]:
    for record in records:
        task = record.get("id")
        names = [name for name in record if name.endswith(_RESPONSES)]
        for name in names:
            question = name.removesuffix(_RESPONSES)
            labels = _listed(record.get(name))
            workers = _listed(record.get(f"{name}.users"))
            states = _listed(record.get(f"{name}.status")) or ["submitted"] * len(labels)
            for label, worker, state in zip(labels, workers, states, strict=False):
                if state in ("draft", "discarded", "pending"):
                    yield Dropped("drafts and discarded responses")
                else:
                    yield _judged(task, worker, label, question)
            if record.get(f"{question}.suggestion") is not None:
                worker = model_worker(record.get(f"{question}.suggestion.agent"))
                yield _judged(task, worker, record[f"{question}.suggestion"], question, MODEL)


def _judged(task: Any, worker: Any, label: Any, question: str, kind: str = "human") -> Event:
    """Return a response; only questions of ratings have numbers as values."""
    form, compared = CHOICES, None
    if isinstance(label, list):
        records = mappings(label)
        if any("start" in one for one in records) or (records and "value" not in records[0]):
            return Dropped("marks, not labels of a whole task")
        form, compared = (RANKING, _ranking(records)) if records else (LIST, Ranking(label))
    elif isinstance(label, int | float) and not isinstance(label, bool):
        form = RATING
    return LabelRecord(task, worker, label, question, kind=kind, form=form, compared=compared)


def _ranking(records: list[dict[str, Any]]) -> Ranking:
    """Return the order of values with ranks, 1 for the best; equal ranks are ties.

    Without ranks the values are in order; with some of them the order is not known.
    """
    values = [one.get("value") for one in records]
    ranks = [number_of(one.get("rank")) for one in records]
    known = [rank for rank in ranks if rank is not None]
    if not known:
        return Ranking(values)
    return Ranking(values, known) if len(known) == len(values) else Ranking([])


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
