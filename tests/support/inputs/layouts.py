"""Cases of layouts: no header, wide tables, names of columns, and values written in two ways."""

from __future__ import annotations

import json
from typing import Any

from tests.support.inputs.case import (
    CLASSES,
    TASKS,
    WORKERS,
    InputCase,
    columns,
    csv_of,
    expected,
    file_case,
    python_case,
    rejected,
    replaced,
    right,
    table_case,
    warned,
)

_NAMED = ("--no-header", "--columns", "task,worker,label")


def _bare(table: dict[str, list[Any]]) -> tuple[str, bytes]:
    name, content = csv_of(table)
    return name, content.partition(b"\n")[2]


def _numbered() -> dict[str, list[Any]]:
    return columns(range(100, 112), range(4), (1, 2))


def _header_cases() -> list[InputCase]:
    numbers = expected([str(i) for i in range(100, 112)], ("1", "2"))
    return [
        file_case("no header, and numbers", rejected("a.csv has no header", "'100', '0', '1'",
                                                     " ".join(_NAMED)), _bare(_numbered())),
        file_case("no header, and text", rejected("a.csv has no header", "'t00', 'ann', 'cat'",
                                                  " ".join(_NAMED)), _bare(columns())),
        file_case("numbers without a header, and their names", right(numbers), _bare(_numbered()),
                  arguments=_NAMED),
        file_case("text without a header, and its names", right(), _bare(columns()),
                  arguments=_NAMED),
        file_case("too few names for a file without a header",
                  rejected("a.csv has 3 columns", "--columns names 2"), _bare(columns()),
                  arguments=("--no-header", "--columns", "task,label")),
        file_case("no header and no names", rejected("--columns task,worker,label"),
                  _bare(columns()), arguments=("--no-header",)),
        file_case("names although there is a header", rejected("--no-header"),
                  arguments=_NAMED[1:]),
        file_case("blank lines that end with carriage returns", right(),
                  ("a.csv", b"\r\r" + csv_of(columns(), line_end="\r")[1])),
    ]  # fmt: skip


def _wide() -> dict[str, list[Any]]:
    """Return the base crowd as a wide table with a text beside the labels."""
    label = iter(columns()["label"])
    rows = [[next(label) for _ in WORKERS] for _ in TASKS]
    cells = dict(zip(WORKERS, map(list, zip(*rows, strict=True)), strict=True))
    return {"id": list(TASKS), "text": [f"text {task}" for task in TASKS], **cells}


def _wide_cases() -> list[InputCase]:
    hint = rejected("looks like a wide table", "wide=True", "worker_columns=['ann', 'bob', 'cem'",
                    shell=("a.csv", "looks like a wide table", "--wide", "--worker-columns ann,bob")
                    )  # fmt: skip
    listed = list(WORKERS)
    gold = {"gold": [CLASSES[i % 2] for i in range(len(TASKS))]}
    lines = [dict(zip(_wide(), row, strict=True)) for row in zip(*_wide().values(), strict=True)]
    return [
        table_case("a wide table that nobody called so", hint, _wide()),
        table_case("a wide table with a text", right(), _wide(), options={"wide": True},
                   arguments=("--wide",)),
        table_case("a wide table with a gold column", right(), _wide() | gold,
                   options={"wide": True}, arguments=("--format", "wide")),
        table_case("named workers of a wide table", right(), _wide(),
                   options={"worker_columns": listed},
                   arguments=("--worker-columns", ",".join(listed))),
        table_case("a worker that a wide table does not have",
                   rejected("no column 'bop' for a worker", "did you mean 'bob'"), _wide(),
                   options={"worker_columns": ["ann", "bop"]},
                   arguments=("--worker-columns", "ann,bop")),
        file_case("a wide table of JSON lines", right(),
                  ("a.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode()),
                  arguments=("--wide",)),
    ]  # fmt: skip


def _name_cases() -> list[InputCase]:
    table = columns()
    renamed = {"document_id": table["task"], "judge": table["worker"], "category": table["label"]}
    names = {"x": table["task"], "y": table["worker"], "z": table["label"]}
    gold = "doc,verdict\nt00,cat\n"
    options = ("--task", "x", "--worker", "y", "--label", "z")
    return [
        table_case("document_id, judge and category", right(), renamed),
        table_case("two ids that could be the task",
                   rejected("'document_id', 'sentence_id' could each be the task"),
                   renamed | {"sentence_id": table["task"]}),
        file_case("gold under its own names", right(), csv_of(names),
                  gold=b"item_id,truth\nt00,cat\n", arguments=options),
        file_case("gold under the names of the annotations", right(), csv_of(names),
                  gold=b"x,z\nt00,cat\n", arguments=options),
        file_case("gold under names that nobody knows",
                  rejected("No column looks like the task", "'doc', 'verdict'",
                           "--gold-columns TASK,LABEL"), gold=gold.encode()),
        file_case("gold whose columns are named", right(), gold=gold.encode(),
                  arguments=("--gold-columns", "doc,verdict")),
    ]  # fmt: skip


def _value_cases() -> list[InputCase]:
    signs = columns(classes=("+1", "-1"))
    marked = signs | {"label": [f"'{signs['label'][0]}", *signs["label"][1:]]}
    mixed = replaced("label", (4,), 1.0, classes=(0, 1))
    lines = [dict(zip(mixed, row, strict=True)) for row in zip(*mixed.values(), strict=True)]
    return [
        file_case("an apostrophe before some of the signs",
                  warned("'+1 and +1 in the label column count as one",
                         labels=expected(classes=("+1", "-1"))), csv_of(marked)),
        python_case("1 and 1.0", warned("The label values hold 1 and 1.0",
                                        labels=expected(classes=(0, 1))), lambda: mixed),
        file_case("1 and 1.0 in JSON lines", warned("The label values hold 1 and 1.0",
                                                    labels=expected(classes=(0, 1))),
                  ("a.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())),
        python_case("1, 1.0 and True in a frame of objects",
                    rejected("The label values mix types", "bool in row 6"), _objects,
                    needs="pandas"),
    ]  # fmt: skip


def _objects() -> Any:
    import pandas as pd

    table = replaced("label", (4,), 1.0, classes=(0, 1))
    table["label"][5] = True
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in table.items()})


CASES = (*_header_cases(), *_wide_cases(), *_name_cases(), *_value_cases())
