"""The check list that a page without known answers offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wisecrowd.core.exceptions import WisecrowdError
from wisecrowd.core.plain_values import plain
from wisecrowd.reporting.display import TITLE, shorten
from wisecrowd.reporting.verdict import CHECK, command_for
from wisecrowd.truth.check_lists import check_list


def list_to_check(
    study: Any, files: Sequence[str], reading: Sequence[str]
) -> dict[str, Any] | None:
    """Return the tasks whose answers would measure a study, and the command that lists them.

    None for kinds whose results cannot be checked task by task, and for ids of more than 300
    characters, which a page cuts.
    """
    try:
        columns = check_list(study.labels, fit=study.fit, random_state=study.seed).columns
    except WisecrowdError:
        return None
    command = "wc.truth.check_list(labels, 60)"
    if files:
        command = command_for(CHECK, files, reading, reported=study.method)
    texts = rounded_texts(columns)
    if max(map(len, texts["task"])) > TITLE:
        return None
    texts = {name: [shorten(one, TITLE) for one in texts[name]] for name in texts}
    rows = [list(row) for row in zip(*texts.values(), strict=True)]
    return {"n": len(rows), "command": command, "rows": [list(texts), *rows]}


def offered_rows(check: Mapping[str, Any]) -> list[list[str]]:
    """Return the rows of the list as a csv file has them; no spreadsheet runs their text."""
    import pyarrow as pa

    from wisecrowd.io.cells import neutralised

    return [neutralised(pa.array(row)).to_pylist() for row in check["rows"]]


def rounded_texts(columns: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the columns of a table as texts; numbers with six digits.

    Examples
    --------
    >>> rounded_texts({"task": ["t1"], "weight": [100 / 3]})
    {'task': ['t1'], 'weight': ['33.3333']}
    """
    return {
        name: [f"{x:.6g}" if isinstance(x, float) else str(x) for x in plain(values)]
        for name, values in columns.items()
    }
