"""Exports of Label Studio: the JSON export of some tasks, and the flat ones that say the same."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

FORMATS = ("export.json", "export_min.json", "export.csv", "export.tsv")
PLAIN = {"choices": "choices", "textarea": "text"}  # one value stands as plain text


def task(number: int, data: dict, *annotations: tuple[int, list[dict]]) -> dict:
    """Return a task with the annotations (worker, results)."""
    return {"id": number, "data": data, "annotations": [
        {"id": 100 * number + k, "completed_by": worker, "created_at": "2026-03-01T09:00:00Z",
         "lead_time": 6.0, "result": result}
        for k, (worker, result) in enumerate(annotations)
    ]}  # fmt: skip


def result(name: str, type_of: str, value: dict, to_name: str = "text", **more) -> dict:
    """Return one result of an annotation."""
    return {"from_name": name, "to_name": to_name, "type": type_of, "value": value, **more}


def flattened(tasks: list[dict]) -> list[dict]:
    """Return the rows of JSON_MIN: no key for a control without an answer."""
    rows = []
    for task in tasks:
        for made in task["annotations"]:
            row = {**task["data"], "id": task["id"], "annotator": made["completed_by"],
                   "annotation_id": made["id"], "lead_time": made["lead_time"],
                   "created_at": made["created_at"]}  # fmt: skip
            for given in made["result"]:
                name, type_of = given["from_name"], given["type"]
                key = PLAIN.get(type_of)
                if key is not None and len(given["value"][key]) == 1:
                    row[name] = given["value"][key][0]
                elif key is not None:
                    row[name] = given["value"]
                else:
                    sizes = {k: v for k, v in given.items() if k.startswith("original_")}
                    row.setdefault(name, []).append(given["value"] | sizes)
            rows.append(row)
    return rows


def write_export(folder: Path, name: str, tasks: list[dict]) -> Path:
    """Write one of the four formats."""
    path = folder / name
    if name == "export.json":
        path.write_text(json.dumps(tasks))
        return path
    rows = flattened(tasks)
    if name == "export_min.json":
        path.write_text(json.dumps(rows))
        return path
    text = io.StringIO(newline="")
    header = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(text, header, delimiter="\t" if name.endswith("tsv") else ",")
    writer.writeheader()
    writer.writerows(
        {k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()} for row in rows
    )
    path.write_text(text.getvalue(), newline="")
    return path
