"""Cases of tables: columns that are wrong, missing or repeated, and files in every dress."""

from __future__ import annotations

import gzip
import json
from typing import Any

from tests.support.inputs.case import (
    InputCase,
    columns,
    csv_of,
    expected,
    file_case,
    parquet_of,
    python_case,
    rejected,
    replaced,
    right,
    table_case,
    warned,
)


def _renamed(**names: str) -> dict[str, list[Any]]:
    return {names.get(role, role): values for role, values in columns().items()}


def _column_cases() -> list[InputCase]:
    table = columns()
    return [
        table_case("columns under usual other names", right(),
                   _renamed(task="item", worker="annotator", label="answer")),
        table_case("columns in capitals", right(),
                   _renamed(task="Task ID", worker="WORKER", label="Label")),
        table_case("columns named by options", right(), _renamed(task="x", worker="y", label="z"),
                   options={"task": "x", "worker": "y", "label": "z"},
                   arguments=("--task", "x", "--worker", "y", "--label", "z")),
        table_case("a column that does not exist",
                   rejected("no column 'lable' for the label", "did you mean 'label'"),
                   options={"label": "lable"}, arguments=("--label", "lable")),
        table_case("no column that looks like the worker",
                   rejected("No column looks like the worker", "'who'", "worker='...'",
                            shell=("No column looks like the worker", "--worker NAME")),
                   _renamed(worker="who")),
        table_case("two columns that could be the task",
                   rejected("'task', 'item' could each be the task", "task='task'",
                            shell=("could each be the task", "--task task")),
                   table | {"item": table["task"]}),
        table_case("a table without labels",
                   rejected("No column looks like the label", "'task', 'worker'"),
                   {"task": table["task"], "worker": table["worker"]}),
        table_case("columns that nobody needs", right(),
                   table | {"comment": ["=x"] * 48, "": [""] * 48}),
        table_case("one column for two roles",
                   rejected("'worker'", "task and the worker", "a column of its own"),
                   options={"task": "worker", "worker": "worker", "label": "label"},
                   arguments=("--task", "worker", "--worker", "worker")),
        python_case("an unknown option of reading",
                    rejected("Unknown option 'wieght'", "did you mean 'weight'"), columns,
                    reading={"wieght": "w"}),
        table_case("a table without rows", rejected("no", "rows", shell=("a.csv", "no rows")),
                   {"task": [], "worker": [], "label": []}),
    ]  # fmt: skip


def _repeat_cases() -> list[InputCase]:
    table = columns()
    same = {role: [*values, values[4]] for role, values in table.items()}
    conflict = {role: [values[4], *values] for role, values in table.items()}
    conflict["label"][0] = "cat"  # row 5 says dog
    dated = conflict | {"timestamp": ["2024-01-01", *["2023-01-01"] * 48]}
    return [
        table_case("an annotation given twice",
                   warned("1 annotations repeat a (task, worker) pair", "duplicates='keep'",
                          shell=("repeat a (task, worker) pair", "--duplicates keep")), same),
        table_case("two labels by one worker for one task",
                   warned("1 annotations repeat a (task, worker) pair", "the last"), conflict),
        table_case("two labels, the later of which counts",
                   warned("the latest timestamp counts"), dated),
        table_case("repeats forbidden",
                   rejected("rows 1, 6", "duplicates='last'",
                            shell=("rows 1, 6 of a.csv", "--duplicates last")), conflict,
                   options={"duplicates": "error"}, arguments=("--duplicates", "error")),
        table_case("repeats kept", right(), same, options={"duplicates": "keep"},
                   arguments=("--duplicates", "keep")),
        table_case("an unknown policy for repeats",
                   rejected("duplicates is 'first'", "last, keep, error"),
                   options={"duplicates": "first"}, arguments=("--duplicates", "first")),
        table_case("one task under two questions",
                   rejected("two questions, 'is it?' and 'was it?'", "rows 5, 49"),
                   same | {"question": ["is it?"] * 48 + ["was it?"]}),
        table_case("times that are none",
                   rejected("timestamp", "'yesterday'", "2024-05-31T14:00:00Z"),
                   table | {"timestamp": ["yesterday"] * 48}),
    ]  # fmt: skip


def _json_lines(table: dict[str, list[Any]]) -> bytes:
    rows = zip(*table.values(), strict=True)
    return "".join(json.dumps(dict(zip(table, row, strict=True))) + "\n" for row in rows).encode()


def _file_cases() -> list[InputCase]:
    name, plain = csv_of(columns())
    lines = plain.decode().splitlines()
    return [
        file_case("a byte order mark", right(), (name, b"\xef\xbb\xbf" + plain)),
        file_case("line ends of another system", right(), csv_of(columns(), line_end="\r\n")),
        file_case("no line end at the end", right(), (name, plain.rstrip())),
        file_case("blank lines", right(), (name, b"\n\n" + plain + b"\n\n")),
        file_case("semicolons", right(), csv_of(columns(), separator=";")),
        file_case("tabs in a csv", right(), csv_of(columns(), separator="\t")),
        file_case("a tsv", right(), csv_of(columns(), "a.tsv", separator="\t")),
        file_case("every field in quotes", right(),
                  (name, "".join('"' + x.replace(",", '","') + '"\n' for x in lines).encode())),
        file_case("spaces around the header", right(),
                  (name, plain.replace(b"task,worker,label", b"task , worker, label"))),
        file_case("a gzip file", right(), ("a.csv.gz", gzip.compress(plain))),
        file_case("no gzip inside", rejected("a.csv.gz"), ("a.csv.gz", b"\x1f\x8bnothing")),
        file_case("an empty file", rejected("a.csv is empty"), (name, b"")),
        file_case("a row with too many fields",
                  rejected("a.csv", "row 49 has 4 fields", "header has 3", "quote values"),
                  (name, plain + b"t00,eve,cat,dog\n")),
        file_case("a quote that is never closed", rejected("a.csv", "quote", "never closed"),
                  (name, plain.replace(b"t03,bob,dog", b't03,"bob,dog'))),
        file_case("UTF-16 unannounced", rejected("UTF-16", "--encoding utf-16"),
                  (name, plain.decode().encode("utf-16"))),
        file_case("UTF-16 announced", right(), (name, plain.decode().encode("utf-16")),
                  arguments=("--encoding", "utf-16")),
        file_case("a NUL byte", rejected("a.csv"), (name, b"\0" + plain)),
        file_case("JSON lines", right(), ("a.jsonl", _json_lines(columns()))),
        file_case("JSON lines of mixed types", rejected("a.jsonl", "label"),
                  ("a.jsonl", _json_lines(replaced("label", (5,), 1)))),
        file_case("JSON lines with null",
                  rejected("The worker column is empty in row 6 of a.jsonl"),
                  ("a.jsonl", _json_lines(replaced("worker", (5,), None)))),
        file_case("JSON lines with a broken line", rejected("a.jsonl", "line 49"),
                  ("a.jsonl", _json_lines(columns()) + b'{"task": \n')),
        file_case("a parquet file", right(), parquet_of(columns())),
        file_case("a parquet file that is cut", rejected("a.parquet"),
                  ("a.parquet", parquet_of(columns())[1][:-30])),
        file_case("text called parquet", rejected("a.parquet", "--format csv"),
                  ("a.parquet", plain)),
        file_case("a format that is not known", rejected("no format 'xls'", "csv"),
                  arguments=("--format", "xls")),
        file_case("a name without a format", rejected("a.data", "--format csv"),
                  ("a.data", plain)),
        file_case("an option that does not exist", rejected("--wieght", "--weight"),
                  arguments=("--wieght", "w")),
        file_case("several classes of a spreadsheet", right(expected(classes=("1", "2"))),
                  csv_of(columns(classes=(1, 2)))),
    ]  # fmt: skip


CASES = (*_column_cases(), *_repeat_cases(), *_file_cases())
