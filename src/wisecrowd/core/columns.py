"""Detection of columns by their usual names; guesses are reported.

Rows that repeat these names, as in files that were joined, are found here too.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.kinds import kinds_package
from wisecrowd.core.messages.option_spelling import for_reader, option

# Lower case, without spaces, underscores and hyphens: `HIT Id`, `hit_id`, `HITId` are equal.
ALIASES: dict[str, tuple[str, ...]] = {
    "task": ("task", "taskid", "item", "itemid", "unit", "unitid", "subject", "subjectid", "hitid",
             "example", "exampleid"),
    "worker": ("worker", "workerid", "annotator", "annotatorid", "rater", "raterid", "performer",
               "performerid", "user", "userid", "completedby"),
    "label": ("label", "answer", "response", "value", "rating", "class"),
    "weight": ("weight",),
    "timestamp": ("timestamp", "tstamp"),
    "duration": ("duration",),
    "cost": ("cost",),
    "question": ("question",),
    "worker_kind": ("workerkind", "kind"),
}  # fmt: skip
# Names that count only if no alias is present: next to `label`, `category` describes the task.
SECOND_CHOICE: dict[str, tuple[str, ...]] = {
    "task": ("question", "document", "doc", "image", "sentence", "text", "tweet", "comment", "post",
             "sample", "instance", "video", "clip", "utterance", "passage", "pair", "prompt",
             "query", "article", "review", "record", "object", "photo", "picture", "page"),
    "worker": ("judge", "coder", "labeler", "labeller", "assessor", "grader", "evaluator",
               "contributor", "turker", "crowdworker", "participant", "respondent", "voter",
               "reviewer", "scorer", "tagger", "username"),
    "label": ("category", "score", "grade"),
}  # fmt: skip
# Names that mean the task only if no better name is present. Next to `task_id`, an `id` is that of
# the annotation; next to `task`, a `question` is the question asked.
LAST_RESORT = {"task": ("question", "id")}
# Ids of other things than tasks: of the annotation, its worker or its place.
_OTHER_IDS = (
    "annotation", "assignment", "judgment", "judgement", "submission", "response", "answer",
    "label", "class", "category", "row", "session", "batch", "job", "project", "dataset",
    "campaign", "round", "group", "team", "device", "account", "model", "run", "client", "reviewer",
)  # fmt: skip
_ID = re.compile(r"(.*?)([ _-]+[iI][dD]|(?<=[a-z])I[dD])", re.DOTALL)
# Additional names for the column of classes in a file of known classes.
TRUTH_NAMES = ("truth", "gold", "true_label", "correct", "class")
_JOINTS = str.maketrans("", "", " _-")
LABEL = {"label": ALIASES["label"]}
SIDES = ("left", "right")  # the columns of the items of pairs
# Endings of the names of two columns that hold the items of pairs: `model_left`, `answer_b`.
_SIDE_ENDS = (re.compile(r"(.+?)[ _-]?(left|right)", re.I), re.compile(r"(.+)[ _-]([ab])", re.I))
OPTIONAL_ROLES = ("weight", "timestamp", "duration", "cost", "question", "worker_kind")


def find_columns(
    columns: Sequence[str],
    asked: Mapping[str, str | None],
    payload: Mapping[str, Sequence[str]] = LABEL,
    optional: Sequence[str] = (),
) -> tuple[dict[str, str], str | None]:
    """Return the column of each role, and a sentence if an alias identified a required one.

    Parameters
    ----------
    columns : sequence of str
        The names that the table has.
    asked : mapping of role to column name or None
        ``None`` means that the usual names are tried. A missing required role is an error; a
        missing optional role is left out.
    payload : mapping of role to the usual names of its column
        The columns of the content of annotations; each is required.
    optional : sequence of str
        Roles among these, tasks and workers that a table may lack.
    """
    required = ("task", "worker", *payload)
    found: dict[str, str] = {}
    for role, name in asked.items():
        if name is not None:
            found[role] = _exact(name, role, columns)
    _refuse_shared({role: found[role] for role in required if role in found})
    guessed = {}
    for role in (*required, *OPTIONAL_ROLES):
        free = [column for column in columns if column not in found.values()]
        if role in found or (role in required and role not in asked):
            continue
        usual = payload.get(role, ALIASES.get(role, ()))
        name = guess(role, free, usual)
        if name is not None:
            found[role] = guessed[role] = name
        elif role in required and role not in optional:
            raise DataError(_not_found(role, columns, usual))
    renamed = [f"{role} = {name!r}" for role, name in guessed.items() if role != name]
    return found, f"columns recognised: {', '.join(renamed)}" if renamed else None


def _refuse_shared(found: Mapping[str, str]) -> None:
    """Refuse one column in two required roles: every worker would label one task."""
    roles = list(found)
    for role in roles:
        for other in roles[: roles.index(role)]:
            if found[role] == found[other]:
                raise DataError(
                    f"The column {found[role]!r} is named for the {other} and the {role}; "
                    "give each a column of its own."
                )


def _exact(name: str, role: str, columns: Sequence[str]) -> str:
    if columns.count(name) > 1:
        raise DataError(f"There are {columns.count(name)} columns named {name!r}; rename one.")
    if name in columns:
        return name
    if role == "label" and (several := several_named(name, columns)):
        raise DataError(several)
    close = difflib.get_close_matches(name, columns, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {listed(columns)}."
    raise DataError(f"There is no column {name!r} for the {role}; {hint}")


def several_named(name: str, known: Sequence[str]) -> str | None:
    """Return a sentence if a name lists several of the known questions, separated by commas.

    Examples
    --------
    >>> several_named("mood,topic", ["mood", "topic"])
    "'mood,topic' names 2 questions, and a run answers one question; give label='mood'."
    """
    parts = [part.strip() for part in name.split(",")]
    if len(parts) < 2 or not set(parts) <= set(known):
        return None
    return (
        f"{name!r} names {len(parts)} questions, and a run answers one question; give "
        f"{option('label', parts[0])}."
    )


def plain_name(name: str) -> str:
    """Return a name in lower case, without spaces, underscores and hyphens."""
    return name.strip().lower().translate(_JOINTS)


def guess(role: str, columns: Sequence[str], usual: Sequence[str] = ()) -> str | None:
    """Return the column whose name means the role, or None; several are an error.

    ``usual`` lists the simplified names of a role that this module does not know.
    """
    candidates: list[str] = []
    for means_it in _choices(role, usual or ALIASES[role]):
        candidates = candidates or [c for c in columns if means_it(c)]
    if len(set(candidates)) < len(candidates):
        raise DataError(f"There are {len(candidates)} columns named {candidates[0]!r}; rename one.")
    if len(candidates) > 1:
        raise DataError(
            f"The columns {listed(candidates)} could each be the {role}; say which one with "
            f"{option(option_of(role), candidates[0])}."
        )
    return candidates[0] if candidates else None


def _choices(role: str, usual: Sequence[str]) -> Iterator[Callable[[str], bool]]:
    """Yield tests of whether a column's name means the role, the most reliable first."""
    second = SECOND_CHOICE.get(role, ())
    ids = [f"{noun}id" for noun in second]
    yield lambda name: plain_name(name) in usual
    if role == "task":  # the noun alone usually names the content: `text`, `image`
        yield lambda name: plain_name(name) in ids
        yield lambda name: plain_name(name) in LAST_RESORT[role]
        yield lambda name: id_of(name) is not None and not _is_other_id(id_of(name))
    else:
        yield lambda name: plain_name(name) in (*second, *ids)


def id_of(name: str) -> str | None:
    """Return the noun in the name of an id column; None if the name is not that of an id.

    Examples
    --------
    >>> id_of("document_id"), id_of("imageId"), id_of("Tweet ID"), id_of("paid"), id_of("id")
    ('document', 'image', 'tweet', None, None)
    """
    match = _ID.fullmatch(name.strip())
    return (plain_name(match[1]) or None) if match else None


def _is_other_id(noun: str | None) -> bool:
    workers = (*ALIASES["worker"], *SECOND_CHOICE["worker"])
    return noun in _OTHER_IDS or noun in workers or noun in ALIASES["label"]


def _not_found(role: str, columns: Sequence[str], usual: Sequence[str]) -> str:
    close = difflib.get_close_matches(role, [plain_name(c) for c in columns], n=1, cutoff=0.7)
    hint = kinds_package().kind_hint(columns) if role == "label" else ""
    if close:
        name = next(c for c in columns if plain_name(c) == close[0])
        hint = f" (is it {name!r}?)"
    given = for_reader(f"{option_of(role)}='...'", f"--{option_of(role)} NAME")
    what = f"{role} item" if role in SIDES else role
    return (
        f"No column looks like the {what}: there are {listed(columns)}{hint}; name it with "
        f"{given} or call it one of {', '.join(usual[:4])}."
    )


def unknown_workers(columns: Sequence[str], found: Mapping[str, str]) -> str | None:
    """Return a sentence if no column names the workers and some columns are not used.

    Examples
    --------
    >>> unknown_workers(["left", "right"], {"left": "left", "right": "right"}) is None
    True
    """
    unused = [column for column in columns if column not in found.values()]
    if "worker" in found or not unused:
        return None
    given = for_reader("worker='...'", "--worker NAME")
    return (
        f"no column looks like the worker, so workers are unknown; not used: {listed(unused)}; if "
        f"one of them names the workers, give {given}"
    )


def side_columns(columns: Sequence[str], outcomes: Sequence[str]) -> tuple[str, str] | None:
    """Return the two columns that by their endings hold the items of pairs, or None.

    Parameters
    ----------
    columns : sequence of str
        The names that the table has.
    outcomes : sequence of str
        Usual names of the column of outcomes; without one, columns may be those of workers.

    Examples
    --------
    >>> side_columns(["model_left", "model_right", "winner"], ["winner"])
    ('model_left', 'model_right')
    """
    if not any(plain_name(name) in outcomes for name in columns):
        return None
    for ending in _SIDE_ENDS:
        sides: dict[str, list[str]] = {}
        for name in columns:
            if match := ending.fullmatch(name.strip()):
                sides.setdefault(plain_name(match[1]), []).append(name)
        found = [sorted(pair, key=str.lower) for pair in sides.values() if len(pair) == 2]
        if len(found) == 1:
            return found[0][0], found[0][1]
    return None


def holds_texts(columns: Sequence[str]) -> bool:
    """Return whether the column ``text`` is the only one that can hold the answers of workers.

    Beside a column of any other name than those of tasks, workers and measures it may be the
    content of the task.

    Examples
    --------
    >>> holds_texts(["task", "worker_id", "text"]), holds_texts(["task", "worker", "text", "mood"])
    (True, False)
    """
    names = [plain_name(name) for name in columns]
    others = {name for role, usual in ALIASES.items() if role != "label" for name in usual}
    return names.count("text") == 1 and all(name in {"text", "id", *others} for name in names)


def option_of(role: str) -> str:
    """Return the option that names the column of a role: ``label`` names every column of answers.

    Examples
    --------
    >>> option_of("left"), option_of("outcome")
    ('left', 'label')
    """
    return role if role in ALIASES or role in SIDES else "label"


def listed(columns: Sequence[str]) -> str:
    """Return the first few names, in quotes."""
    shown = ", ".join(repr(c) for c in columns[:12]) or "none"
    return shown + (f" and {len(columns) - 12} more" if len(columns) > 12 else "")


_BEFORE = ("", "\ufeff")  # a file that was joined may begin with a mark of its encoding


def header_rows(columns: Mapping[str, Any]) -> NDArray[np.int64]:
    """Return the rows in which every value is the name of its column; of one column, none.

    Parameters
    ----------
    columns : mapping of name to values
        Arrow or NumPy arrays, or lists.

    Examples
    --------
    >>> header_rows({"task": ["t1", "task"], "label": ["cat", "label"]}).tolist()
    [1]
    """
    rows = np.zeros(0, dtype=np.int64)
    for number, (name, values) in enumerate(columns.items()):
        if number == 0:
            rows = _first_rows(name, values)
        else:
            rows = rows[[_at(values, row) == name for row in rows.tolist()]]
        if not len(rows):
            break
    return rows if len(columns) > 1 else rows[:0]


def _first_rows(name: str, values: Any) -> NDArray[np.int64]:
    """Return the rows with a name, quickly: nearly always there are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(values, pa.Array | pa.ChunkedArray):
        if pa.types.is_dictionary(values.type):
            return _first_rows(name, _without_dictionary(name, values))
        kind = values.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            return np.zeros(0, dtype=np.int64)
        # A comparison with a scalar would import pandas, which takes longer than the search.
        pattern = rf"^(?:{_BEFORE[1]})?\s*{re.escape(name)}\s*$"
        rows = pc.indices_nonzero(pc.match_substring_regex(values, pattern)).to_pylist()
        return np.array([row for row in rows if _at(values, row) == name], dtype=np.int64)
    if isinstance(values, np.ndarray) and values.dtype.kind not in "OUT":
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero([isinstance(x, str) and _text(x) == name for x in values])


def _without_dictionary(name: str, values: Any) -> Any:
    """Return the texts behind a dictionary; [] if the name is not in it, which takes no time."""
    import pyarrow as pa

    parts = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    if any(name in map(_text, part.dictionary) for part in parts):
        return values.cast(values.type.value_type)
    return []


def _at(values: Any, row: int) -> str:
    """Return the text in a row; columns may still have different lengths."""
    if hasattr(values, "iloc"):  # a series has an index of its own
        return _text(values.iloc[row]) if row < len(values) else ""
    return _text(values[row]) if row < len(values) else ""


def _text(value: Any) -> str:
    """Return a value as text, without what may stand around a name in a header."""
    value = value.as_py() if hasattr(value, "as_py") else value
    return value.removeprefix(_BEFORE[1]).strip() if isinstance(value, str) else ""


def header_sentence(where: str, names: list[str], remedy: str = "remove it") -> str:
    """Return the sentence that refuses such a row.

    Examples
    --------
    >>> header_sentence("row 7 of a.csv", ["task", "worker", "label"])
    "row 7 of a.csv repeats the names of the columns ('task', 'worker', 'label'); remove it."
    """
    listed = ", ".join(map(repr, names[:5])) + (" …" if len(names) > 5 else "")
    return f"{where} repeats the names of the columns ({listed}); {remedy}."
