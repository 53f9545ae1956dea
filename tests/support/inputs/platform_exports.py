"""Cases of platform exports: models beside humans, kinds of workers, flat exports."""

from __future__ import annotations

import json
from typing import Any

from tests.support.inputs.case import (
    CLASSES,
    N_WORKERS,
    TASKS,
    InputCase,
    columns,
    csv_of,
    expected,
    file_case,
    rejected,
    right,
)

_NUMBERS = [str(number) for number in range(701, 701 + len(TASKS))]


def _made(label: str, **more: Any) -> dict[str, Any]:
    value = {"choices": [label]}
    return {"result": [{"from_name": "animal", "to_name": "image", "type": "choices",
                        "value": value}], **more}  # fmt: skip


def _export(
    *, wrong_models: int = 0, kind: str = "human", imported: bool = False
) -> tuple[str, bytes]:
    """Return the base crowd, of humans or of models, as Label Studio's JSON, with more models."""
    table, truth = columns(tasks=_NUMBERS), expected(tasks=_NUMBERS)
    rows = list(zip(table["worker"], table["label"], strict=True))
    tasks = []
    for i, number in enumerate(_NUMBERS):
        own = rows[i * N_WORKERS : (i + 1) * N_WORKERS]
        people = [_made(label, completed_by=one, ground_truth=imported) for one, label in own]
        models = [_made(label, model_version=one) for one, label in own]
        wrong = next(name for name in CLASSES if name != truth[number])
        more = [_made(wrong, model_version=f"m{j}") for j in range(wrong_models)]
        tasks.append({
            "id": int(number), "data": {"image": f"{number}.jpg", "id": f"my-{i % 2}"},
            "annotations": people if kind == "human" else [],
            "predictions": more if kind == "human" else models,
        })  # fmt: skip
    return "export.json", json.dumps(tasks).encode()


def _flat(separator: str = ",") -> tuple[str, bytes]:
    """Return the base crowd as Label Studio's CSV, with spans, numbers and a rating beside."""
    table = columns(tasks=_NUMBERS)
    size = len(table["task"])
    span = '[{"start":0,"end":3,"text":"Ada","labels":["PER"]}]'
    whole = {
        "animal": table["label"], "annotation_id": list(range(size)), "annotator": table["worker"],
        "id": table["task"], "ner": [span if row % 3 else "" for row in range(size)],
        "quality": [f'[{{"rating":{1 + row % 5}}}]' for row in range(size)],
        "text": [f"text {task}" for task in table["task"]],
    }  # fmt: skip
    return csv_of(whole, separator=separator, line_end="\r\n")


_RIGHT = right(expected(tasks=_NUMBERS))

CASES: tuple[InputCase, ...] = (
    file_case("models that are wrong, beside humans", _RIGHT, _export(wrong_models=5)),
    file_case("models alone", _RIGHT,
              _export(kind="model")),
    file_case("an import whose annotations are all marked as ground truth", _RIGHT,
              _export(imported=True)),
    file_case("a flat export with spans, a question chosen", _RIGHT, _flat(),
              arguments=("--label", "animal")),
    file_case("a flat export separated by tabs", _RIGHT, _flat("\t"),
              arguments=("--label", "animal")),
    file_case("a flat export with three questions",
              rejected("3 questions", "'animal' (choices)", "'ner' (spans)", "'quality' (rating)"),
              _flat()),
    file_case("spans as classes", rejected("'ner' of", "has the form spans", "--type sequences"),
              _flat(), arguments=("--label", "ner", "--type", "labels")),
    file_case("a kind of worker that does not exist",
              rejected("no kind of worker 'robots'", "'human', 'model'"), _export(wrong_models=1),
              arguments=("--kinds", "robots")),
    file_case("every worker excluded",
              rejected("no label by the workers that are asked for", "--exclude-workers"),
              _export(), arguments=("--exclude-workers", "*")),
)  # fmt: skip
