"""Files that look like annotations and are odd: types, encodings, broken JSON, look-alike names."""

from __future__ import annotations

import json
from typing import Any

from tests.support.inputs.case import (
    InputCase,
    columns,
    csv_of,
    expected,
    file_case,
    rejected,
    replaced,
    right,
    table_case,
    typed_case,
    warned,
)

_TWINS = {"a zero-width space": "cat\u200b", "a Cyrillic letter": "\u0441at"}


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _rows(**replacement: Any) -> list[dict[str, Any]]:
    table = columns()
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    rows[1] |= replacement
    return rows


def _json_cases() -> list[InputCase]:
    huge = _lines(_rows(label="HUGE")).replace(b'"HUGE"', b"9" * 5000)
    broken = b'{"task": "t", "worker": "' + b'"\\' * 20_000
    nothing = _lines([row | {"label": None} for row in _rows()])
    return [
        file_case("an integer of 5000 digits in jsonl",
                  rejected("a.jsonl", "line 2", "thousands of digits"), ("a.jsonl", huge)),
        file_case("a text of escapes without an end in jsonl", rejected("a.jsonl", "line 1"),
                  ("a.jsonl", broken)),
        file_case("a text of escapes without an end in json", rejected("a.json", "record 1"),
                  ("a.json", b"[" + broken), arguments=("--format", "label-studio")),
        file_case("a label column of nulls in jsonl", rejected("a.jsonl", "label column is empty"),
                  ("a.jsonl", nothing)),
        file_case("half a character in jsonl", rejected("a.jsonl", "label", "half a character"),
                  ("a.jsonl", _lines(_rows(label="\ud83d")))),
    ]  # fmt: skip


def _nulls() -> dict[str, Any]:
    import pyarrow as pa

    table: dict[str, Any] = dict(columns())
    return table | {"label": pa.nulls(len(table["task"]))}


def _times_of_day() -> dict[str, Any]:
    import pyarrow as pa

    table: dict[str, Any] = columns(classes=(1, 2))
    return table | {"label": pa.array(table["label"], pa.int64()).cast(pa.time64("ns"))}


def _encoding_cases() -> list[InputCase]:
    return [
        file_case(f"--encoding {name}", rejected("no text encoding", repr(name), "utf-8"),
                  arguments=("--encoding", name))
        for name in ("rot13", "base64", "undefined", "idna")
    ]  # fmt: skip


def _wide_csv() -> tuple[str, bytes]:
    rows = columns()
    return csv_of(rows | {f"c{i}": ["0"] * len(rows["task"]) for i in range(5_000)})


def _twin_cases() -> list[InputCase]:
    return [
        table_case(f"classes that differ by {what}",
                   warned("'cat'", ascii(twin), "count as different classes", "look the same",
                          labels={}), replaced("label", (1, 9), twin))
        for what, twin in _TWINS.items()
    ]  # fmt: skip


CASES = (
    *_json_cases(), *_encoding_cases(), *_twin_cases(),
    typed_case("a label column of the type null", rejected("label column is empty"), _nulls),
    typed_case("times of day as labels", rejected("label", "time64[ns]", "text"), _times_of_day),
    table_case("classes in Cyrillic", right(expected(classes=("\u0440\u043e\u0442",
                                                              "\u0441\u043e\u0440\u0442"))),
               columns(classes=("\u0440\u043e\u0442", "\u0441\u043e\u0440\u0442"))),
    file_case("a csv of 5000 columns", right(), _wide_csv()),
    file_case("a csv that is only named .gz", right(), csv_of(columns(), "a.csv.gz")),
    file_case("an empty name of an output", rejected("--workers-to is empty"),
              arguments=("--workers", "")),
)  # fmt: skip
