"""Databases of campaigns in which somebody has changed a cell, a column or a setting."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.label_studio_mirror import AnnotationMirror, Link

NOT_UTF8 = "UPDATE {} SET {} = CAST(x'22fffe22' AS TEXT)"


def make_campaign(path: Path) -> None:
    """Write a small campaign in which every table has rows."""
    with Campaign(
        [f"t{i}" for i in range(4)], classes=["x", "y"], gold={"t0": "x"}, cost={"w1": 2.0},
        path=path,
    ) as made:  # fmt: skip
        link = Link("http://127.0.0.1:1", 7, "mood")
        link.store(made)
        AnnotationMirror(made, link)
        made.tell_many([(f"t{i}", f"w{j}", "xy"[i % 2]) for i in range(4) for j in range(3)])
        made.ask(2, workers=["w9"])
        made._store.run(
            "INSERT INTO label_studio VALUES (1, 101, '\"t1\"', '\"5\"', '\"x\"', 5.0, 0, 1)"
        )
    connection = sqlite3.connect(path)  # one file instead of three
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()


def tamper(path: Path, *statements: Any) -> None:
    """Run statements of SQL, each a text or a text and its values, without any check."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA foreign_keys=OFF")
    for one in statements:
        connection.execute(*([one] if isinstance(one, str) else one))
    connection.commit()
    connection.close()


def with_setting(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the settings of a campaign."""
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT value FROM meta WHERE name = 'settings'").fetchone()[0]
    settings = json.loads(found)
    changed = change(settings)
    text = json.dumps(settings if changed is None else changed)
    connection.execute("UPDATE meta SET value = ? WHERE name = 'settings'", (text,))
    connection.commit()
    connection.close()


def _sql(*statements: Any) -> Callable[[Path], None]:
    return lambda path: tamper(path, *statements)


def _setting(name: str, value: Any) -> Callable[[Path], None]:
    return lambda path: with_setting(path, lambda settings: settings.update({name: value}))


def _rule(name: str, value: Any) -> Callable[[Path], None]:
    return lambda path: with_setting(path, lambda one: one["rules"].update({name: value}))


def _bytes(seed: int) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        content, rng = bytearray(path.read_bytes()), random.Random(seed)
        for _ in range(4096):
            content[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(bytes(content))

    return change


def _cut(size: int) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(path.read_bytes()[:size])


CELLS = [
    ("answers", "task", 99), ("answers", "worker", -1), ("answers", "label", "x"),
    ("answers", "cost", b"12"), ("answers", "cost", float("inf")), ("answers", "cost", -1.0),
    ("answers", "asked", "yes"), ("queries", "score", "high"), ("queries", "score", float("inf")),
    ("queries", "reason", b"\xff"), ("leases", "expires", "soon"), ("leases", "query", 2**62),
    ("tasks", "code", 2**62), ("rounds", "gains", "[]"), ("rounds", "gains", '{"a": NaN}'),
    ("rounds", "gains", "{"), ("rounds", "changed", "text"), ("rounds", "changed", b"1234567"),
    ("rounds", "changed", (99).to_bytes(8, "little")), ("rounds", "n_answers", 10**6),
    ("rounds", "expected", b""), ("label_studio", "name", "no JSON"),
    ("label_studio", "worker", "[1]"), ("label_studio", "updated", "today"),
    ("label_studio", "label", "[" * 100_000), ("meta", "value", "[" * 100_000),
    ("meta", "value", "null"), ("meta", "value", "NaN"), ("meta", "value", b"{}"),
]  # fmt: skip
TEXTS = ["tasks", "workers", "classes"]
IDS = ["[1]", "no JSON", "null", "{}", "[" * 100_000, "1" * 5000, '"\\u0061"', " 1"]
DAMAGES: dict[str, Callable[[Path], None]] = {
    **{f"{t}.{c} = {v!r:.20}": _sql((f"UPDATE {t} SET {c} = ? WHERE rowid = "
                                     f"(SELECT MAX(rowid) FROM {t})" if t != "meta" else
                                     "UPDATE meta SET value = ?", (v,))) for t, c, v in CELLS},
    **{f"{table} without code 0": _sql(f"DELETE FROM {table} WHERE code = 0") for table in TEXTS},
    **{f"{table} id {text:.12}": _sql((f"UPDATE {table} SET id = ? WHERE code = 0", (text,)))
       for table in TEXTS for text in IDS},
    **{f"{table}.{column} is not UTF-8": _sql(NOT_UTF8.format(table, column) + " WHERE rowid = 1")
       for table, column in (("tasks", "id"), ("queries", "reason"), ("rounds", "gains"),
                             ("label_studio", "label")) if table != "tasks"},
    "meta is not UTF-8": _sql(NOT_UTF8.format("meta", "value")),
    **{f"no table {table}": _sql(f"DROP TABLE {table}") for table in
       ("meta", "tasks", "workers", "classes", "answers", "queries", "leases", "rounds", "events")},
    "no column cost": _sql("ALTER TABLE answers DROP COLUMN cost"),
    "another column": _sql("ALTER TABLE answers RENAME COLUMN task TO item"),
    "a view": _sql("ALTER TABLE answers RENAME TO other",
                   "CREATE VIEW answers AS SELECT * FROM other"),
    "a trigger": _sql("CREATE TRIGGER z AFTER INSERT ON answers BEGIN DELETE FROM answers; END"),
    "no settings": _sql("DELETE FROM meta WHERE name = 'settings'"),
    "no answers": _sql("DELETE FROM answers"),
    **{f"version {n}": _sql(f"PRAGMA user_version={n}") for n in (0, 1, 3, -1, 2**31 - 1)},
    **{f"setting {n} = {v!r:.20}": _setting(n, v) for n, v in [
        ("rules", None), ("rules", {}), ("rules", {"a": 1}), ("cost", {"a": "x"}), ("cost", [1]),
        ("cost", {"a": float("nan")}), ("gold", {"t0": "x"}), ("gold", {'"t0"': 5}), ("every", 0),
        ("every", "x"), ("every", 10**30 * 1.0), ("lease_seconds", float("inf")),
        ("lease_seconds", float("nan")), ("lease_seconds", "1"), ("open_tasks", None),
        ("closed", "no")]},
    **{f"rule {n} = {v!r:.20}": _rule(n, v) for n, v in [
        ("policy", "none"), ("policy", 5), ("model", []), ("budget", "x"), ("min_labels", -1),
        ("target", "x"), ("target", 2), ("stop", {}), ("random_state", 1.5), ("max_labels", 0)]},
    **{f"n_classes = {v}": _sql(("UPDATE meta SET value = ? WHERE name = 'n_classes'", (v,)))
       for v in ("-1", "null", "99", '"2"', "1.5")},
    **{f"bytes {seed}": _bytes(seed) for seed in range(8)},
    **{f"cut at {size}": _cut(size) for size in (1, 50, 100, 4096, 9000, 20_000)},
    "text": lambda path: path.write_text("task,worker,label\n" * 50),
}  # fmt: skip
