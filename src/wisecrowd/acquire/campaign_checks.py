"""Checks of a campaign's database when it is opened: a damaged one is refused by one sentence.

SQLite's own check finds broken pages. Everything here is about content that SQLite accepts: missing
tables, other types in cells, codes that lead nowhere, settings that are not ours.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from wisecrowd.acquire.suggesting import AskingRules
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.parameter_checks import check_number

if TYPE_CHECKING:
    from wisecrowd.acquire.campaign_store import CampaignStore

# What each cell must be, as a condition of SQL on its column.
_TEXT, _NUMBER = "typeof({0}) = 'text'", "typeof({0}) IN ('integer', 'real') AND abs({0}) < 9e999"
_CODE = "typeof({0}) = 'integer' AND {0} >= 0"
_OPTIONAL = "{0} IS NULL OR "
TABLES: dict[str, dict[str, str]] = {
    "meta": {"name": _TEXT, "value": _TEXT},
    "tasks": {"code": _CODE, "id": _TEXT},
    "workers": {"code": _CODE, "id": _TEXT},
    "classes": {"code": _CODE, "id": _TEXT},
    "answers": {
        "row": _CODE, "key": _OPTIONAL + _TEXT, "task": _CODE, "worker": _CODE,
        "label": _OPTIONAL + _CODE, "cost": _NUMBER + " AND {0} > 0 AND {0} < 1e100",
        "timestamp": "typeof({0}) != 'blob'", "asked": _CODE,
    },
    "queries": {
        "id": _CODE, "task": _CODE, "worker": _OPTIONAL + _CODE,
        "score": _NUMBER, "reason": _TEXT,
    },
    "leases": {"query": _CODE, "expires": _NUMBER},
    "rounds": {
        "n_answers": _CODE, "gains": _TEXT, "changed": "typeof({0}) = 'blob'",
        "expected": _OPTIONAL + _NUMBER, "gold": _OPTIONAL + _NUMBER,
    },
    "events": {"row": _CODE, "kind": _TEXT, "detail": _TEXT},
}  # fmt: skip
MIRROR = {
    "annotation": _CODE, "task": _OPTIONAL + _CODE, "name": _OPTIONAL + _TEXT,
    "worker": _OPTIONAL + _TEXT, "label": _OPTIONAL + _TEXT, "updated": _NUMBER,
    "deleted": _CODE, "arrived": _CODE,
}  # fmt: skip
SETTINGS: dict[str, type | tuple[type, ...]] = {
    "rules": dict, "cost": dict, "gold": dict, "closed": bool, "lease_seconds": (int, float),
    "open_tasks": bool, "every": int, "tasks": str, "classes": str,
}  # fmt: skip
RULES = {"policy", "model", "budget", "min_labels", "max_labels", "stop", "random_state"}


def damaged(store: CampaignStore, what: str) -> DataError:
    """Return the error about a database whose content cannot be ours."""
    return DataError(f"{store.path} is damaged ({what}); restore it from a copy.")


def check_tables(store: CampaignStore) -> None:
    """Refuse a database with other tables, cells of other types, or codes that lead nowhere."""
    for kind, name in store.rows("SELECT type, name FROM sqlite_master"):
        if kind in ("trigger", "view"):
            raise damaged(store, f"it has a {kind} {name!r:.60}, which no campaign has")
    mirror = {"label_studio": MIRROR} if _columns(store, "label_studio") else {}
    for table, cells in (TABLES | mirror).items():
        lacking = [name for name in cells if name not in _columns(store, table)]
        if lacking:
            raise damaged(store, f"its table {table} has no column {lacking[0]}")
        for name, condition in cells.items():
            wrong = f"SELECT 1 FROM {table} WHERE NOT ({condition.format(name)}) LIMIT 1"
            if store.rows(wrong):
                raise damaged(store, f"a cell of column {name} in its table {table} is not valid")
    for table in ("tasks", "workers", "classes"):
        n, last = store.rows(f"SELECT COUNT(*), MAX(code) FROM {table}")[0]
        if n and last != n - 1:
            raise damaged(store, f"codes are missing in its table {table}")
    for table, _, other, _ in store.rows("PRAGMA foreign_key_check"):
        raise damaged(store, f"a row of its table {table} names a row of {other} that is missing")
    store.rows("SELECT DISTINCT reason FROM queries")  # fails if one is not UTF-8
    if mirror:
        _check_mirror(store)


def _check_mirror(store: CampaignStore) -> None:
    for column in ("name", "worker", "label"):
        found = store.rows(f"SELECT DISTINCT {column} FROM label_studio")
        if not all(text is None or _is_id(text) for (text,) in found):
            raise damaged(store, f"a cell of column {column} in its table label_studio is no id")


def _columns(store: CampaignStore, table: str) -> list[str]:
    return [row[1] for row in store.rows(f"PRAGMA table_info({table})")]


def checked_settings(store: CampaignStore) -> dict[str, Any]:
    """Return the settings of a campaign and its rules, checked."""
    found = store.get("settings")
    if not isinstance(found, dict):
        raise damaged(store, "its settings are not an object")
    for name, wanted in SETTINGS.items():
        if not isinstance(found.get(name), wanted):
            raise damaged(store, f"its setting {name} is missing or not valid")
    is_valid = (
        found["every"] >= 1
        and 0 <= found["lease_seconds"] < float("inf")
        and all(_is_number(price) and price > 0 for price in found["cost"].values())
        and all(_is_id(text) for pair in found["gold"].items() for text in pair)
        and _is_count(store.get("n_classes"), store.rows("SELECT COUNT(*) FROM classes")[0][0])
    )
    if not is_valid:
        raise damaged(store, "its settings are not valid")
    if not found["rules"].keys() >= RULES:
        raise damaged(store, "some of its rules are missing")
    try:
        rules = AskingRules(**found["rules"])
        rules.check()
        if rules.target is not None:
            check_number("target", rules.target, 0.0, 1.0)
    except (TypeError, ParameterError) as error:
        raise damaged(store, f"its rules are not valid: {str(error).rstrip('.')}") from None
    return found


def checked_gains(store: CampaignStore, text: str, changed: bytes, n_tasks: int) -> dict[str, Any]:
    """Return the gains of a round; refuse one that names tasks that are missing."""
    gains = store.parsed(text)
    if not isinstance(gains, dict) or not all(map(_is_number, gains.values())):
        raise damaged(store, "the gains of a round are not numbers")
    codes = np.frombuffer(changed[: len(changed) // 8 * 8], dtype="<i8")
    if len(changed) % 8 or (len(codes) and not 0 <= codes.min() <= codes.max() < n_tasks):
        raise damaged(store, "a round names tasks that are missing")
    return gains


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < float("inf")


def _is_count(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _is_id(text: Any) -> bool:
    try:
        return isinstance(json.loads(text), str | int | float | bool)
    except (ValueError, TypeError, RecursionError):
        return False
