"""Preferences whose responses are lists of messages."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.tables import read


def chat(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": text}]


ROWS = [
    {"prompt": "p1", "chosen": chat("good"), "rejected": chat("bad")},
    {"prompt": "p2", "chosen": chat("fine"), "rejected": chat("bad")},
]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_the_last_message_is_the_item(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    if suffix == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in ROWS))
    else:
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    pairs = read(path)
    assert pairs.items.tolist() == ["bad", "fine", "good"]
    assert sorted(pairs.items[pairs.left].tolist()) == ["fine", "good"]
    assert pairs.outcome.tolist() == [0, 0]
    assert read(path, task="prompt").tasks.tolist() == ["p1", "p2"]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
@pytest.mark.parametrize("value", [[1, 2], [{"text": "good"}], []])
def test_other_lists_are_refused(tmp_path, suffix, value):
    path = tmp_path / f"a.{suffix}"
    rows = [{"chosen": value, "rejected": "bad"}]
    if suffix == "jsonl":
        path.write_text(json.dumps(rows[0]))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    with pytest.raises(DataError, match="give one plain value per annotation"):
        read(path)
