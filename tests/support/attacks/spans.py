"""Attacks on how sequences, sets, rankings and texts are read, and repeated headers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.attacks.attack import Attack

TASKS, WORKERS = [f"t{i}" for i in range(6)], ("ann", "bob", "cem")
LONG = ("task", "worker", "label")


def _csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def _crowd(value: Callable[[int], Sequence[object] | str]) -> list[list[object]]:
    """Return rows in which all workers give task ``i`` the same label, in one or more columns."""
    rows: list[list[object]] = []
    for i, task in enumerate(TASKS):
        own = value(i)
        rows += [[task, worker, *([own] if isinstance(own, str) else own)] for worker in WORKERS]
    return rows


def _answers(out: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(out)))


def _spans(*wanted: tuple[str, str, str]) -> Callable[[Path, str], str]:
    """Return the judge of an answer whose tasks all have the same spans: start, end and type."""

    def judge(folder: Path, out: str) -> str:
        for task in TASKS:
            found = [(r["start"], r["end"], r["label"]) for r in _answers(out) if r["task"] == task]
            if found != list(wanted):
                return f"{task} has {found}"
        return ""

    return judge


def _column(name: str, value: Callable[[int], str]) -> Callable[[Path, str], str]:
    """Return the judge of an answer with one row per task."""

    def judge(folder: Path, out: str) -> str:
        found = {row["task"]: row[name] for row in _answers(out)}
        wrong = [task for i, task in enumerate(TASKS) if found.get(task) != value(i)]
        return f"{wrong[0]} is {found.get(wrong[0])!r}" if wrong else ""

    return judge


def _of(kind: str, *more: str) -> tuple[str, ...]:
    return ("aggregate", "a.csv", "--type", kind, *more)


# ------------------------------------------------------------------------------------- sequences

NOTATIONS = {
    "BIO": "B-PER I-PER I-PER O B-LOC",
    "BIOES": "B-PER I-PER E-PER O S-LOC",
    "BILOU": "B-PER I-PER L-PER O U-LOC",
    "IOB1": "I-PER I-PER I-PER O I-LOC",
    "lower case": "b-PER i-PER i-PER o b-LOC",
    "JSON lists": '["B-PER", "I-PER", "I-PER", "O", "B-LOC"]',
    "Python lists": "['B-PER', 'I-PER', 'I-PER', 'O', 'B-LOC']",
}
STRAY = [*_crowd(lambda i: "B-PER I-PER O O"), ["s", "ann", "S-LOC"]]

_READ = tuple(
    Attack(
        name=f"sequences in {name}",
        arguments=_of("sequences"),
        files={"a.csv": _csv(LONG, _crowd(lambda i, tags=tags: tags))},
        wrong=_spans(("0", "3", "PER"), ("4", "5", "LOC")),
    )
    for name, tags in NOTATIONS.items()
)
_REFUSED_TAGS = {
    "one stray S-LOC": (STRAY, ("'S-LOC' in row 19 of a.csv", "O, B-type, I-type", "--classes")),
    "one stray name": ([*STRAY[:-1], ["s", "ann", "PER"]], ("'PER'", "row 19 of a.csv")),
    "a zero for O": (_crowd(lambda i: "B-PER 0"), ("'0'", "row")),
    "commas between tags": (_crowd(lambda i: "B-PER,I-PER,O"), ("put a space between tags",)),
    "commas between plain tags": (_crowd(lambda i: "NN,VB,DT"), ("put a space between tags",)),
    "an empty list": ([*STRAY[:-1], ["s", "ann", "[]"]], ("is empty in row 19",)),
}
_SEQUENCES = (
    *_READ,
    *(
        Attack(name=f"sequences with {name}", arguments=_of("sequences"),
               files={"a.csv": _csv(LONG, rows)}, refused=words)
        for name, (rows, words) in _REFUSED_TAGS.items()
    ),
    Attack(
        name="unanimous B-X I-Y",
        arguments=_of("sequences"),
        files={"a.csv": _csv(LONG, _crowd(lambda i: "B-X I-Y"))},
        says=("tags I-type continue no span of their type, and begin one",),
        wrong=_spans(("0", "1", "X"), ("1", "2", "Y")),
    ),
    Attack(
        name="plain tags that look a little like marks",
        arguments=_of("sequences"),
        files={"a.csv": _csv(LONG, _crowd(lambda i: "noun , i-adj $, noun"))},
        wrong=_spans(("0", "1", "noun"), ("1", "2", ","), ("2", "3", "i-adj"), ("3", "4", "$,"),
                     ("4", "5", "noun")),
    ),
    Attack(
        name="declared tags that look like marks",
        arguments=_of("sequences", "--classes", "O,B-PER,I-PER,S-LOC,X"),
        files={"a.csv": _csv(LONG, STRAY)},
    ),
    Attack(
        name="gold in BIOES for tags in BIO",
        arguments=_of("sequences", "--gold", "gold.csv"),
        files={
            "a.csv": _csv(LONG, _crowd(lambda i: NOTATIONS["BIO"])),
            "gold.csv": _csv(("task", "label"), [[t, NOTATIONS["BIOES"]] for t in TASKS[:3]]),
        },
        wrong=_spans(("0", "3", "PER"), ("4", "5", "LOC")),
    ),
)  # fmt: skip

# ----------------------------------------------------------------------------- spans and boxes

SPANS = (*LONG, "start", "end")
BOXES = (*LONG, "x", "y", "width", "height")
_PLACES = (
    Attack(
        name="a span without limits",
        arguments=_of("sequences"),
        files={"a.csv": _csv(SPANS, [*_crowd(lambda i: ["PER", 0, 5]),
                                     ["t6", "ann", "PER", "", ""]])},
        refused=("type 'PER' in row 19", "neither start nor end", "marked nothing"),
    ),
    Attack(
        name="a worker who marked nothing",
        arguments=_of("sequences"),
        files={"a.csv": _csv(SPANS, [*_crowd(lambda i: ["PER", 0, 5]), ["t6", "ann", "", "", ""]])},
        wrong=_spans(("0", "5", "PER")),
    ),
    Attack(
        name="a span of type O",
        arguments=_of("sequences"),
        files={"a.csv": _csv(SPANS, _crowd(lambda i: ["O", 0, 5]))},
        refused=("the type 'O'", "rename the type"),
    ),
    Attack(
        name="a span of type B-cell",
        arguments=_of("sequences"),
        files={"a.csv": _csv(SPANS, _crowd(lambda i: ["B-cell", 0, 5]))},
        wrong=_spans(("0", "5", "B-cell")),
    ),
    Attack(
        name="tags of tokens as types of spans",
        arguments=_of("sequences"),
        files={"a.csv": _csv(SPANS, _crowd(lambda i: [("B-PER", "I-PER")[i % 2], 0, 5]))},
        refused=("'I-PER' in row", "tag of a token"),
    ),
    Attack(
        name="a class without a box",
        arguments=_of("boxes"),
        files={"a.csv": _csv(BOXES, [*_crowd(lambda i: ["cat", 0, 0, 9, 9]),
                                     ["t6", "ann", "cat", "", "", "", ""]])},
        refused=("class 'cat' in row 19", "neither x, y, width nor height", "drew nothing"),
    ),
    Attack(
        name="a worker who drew nothing",
        arguments=_of("boxes"),
        files={"a.csv": _csv(BOXES, [*_crowd(lambda i: ["cat", 0, 0, 9, 9]),
                                     ["t6", "ann", "", "", "", "", ""]])},
    ),
)  # fmt: skip

# ------------------------------------------------------------------------------------ rankings


def _rankings(*texts: str) -> dict[str, str]:
    rows = [[worker, text] for text in texts for worker in WORKERS]
    return {"a.csv": _csv(("worker", "ranking"), rows)}


def _items(*wanted: str) -> Callable[[Path, str], str]:
    def judge(folder: Path, out: str) -> str:
        found = {row["item"] for row in _answers(out)}
        return "" if found == set(wanted) else f"items are {sorted(found)}"

    return judge


_TIES = {
    "= between items": ("a = b > c", "c > a"),
    "= without spaces": ("a=b>c", "a>b>c"),
    ">= between items": ("a >= b > c", "c > a"),
    "commas between items": ("a > b, c", "b > c"),
    "two directions": ("a > b < c", "b > c"),
    "lists in lists": ('[["a","b"],"c"]', '["a","b"]'),
}
_RANKINGS = (
    *(
        Attack(name=f"rankings with {name}", arguments=_of("rankings"), files=_rankings(*texts),
               refused=("The ranking", "row 1 of a.csv", "break the tie", "--type pairs"))
        for name, texts in _TIES.items()
    ),
    Attack(
        name="rankings of names with a sign",
        arguments=_of("rankings"),
        files=_rankings("lr=0.1 > lr=0.01", "baseline > lr=0.01", "lr=0.1 > Smith, J."),
        wrong=_items("lr=0.1", "lr=0.01", "baseline", "Smith, J."),
    ),
    Attack(
        name="rankings of names with a spaced sign in lists",
        arguments=_of("rankings"),
        files=_rankings('["a = b", "c"]', '["c", "a = b"]'),
        wrong=_items("a = b", "c"),
    ),
)  # fmt: skip

# ---------------------------------------------------------------------------------------- sets

_DOUBTFUL = {
    "a comma in all rows": lambda i: "a,b",
    "a semicolon in all rows": lambda i: "a;b",
    "a comma in some rows": lambda i: ("a,b", "b", "a")[i % 3],
    "both signs": lambda i: ("a|b", "a, b")[i % 2],
}
RULES = ("-m", "label-set-mixture", "-p")
_SETS = (
    *(
        Attack(name=f"sets with {name}", arguments=_of("sets"),
               files={"a.csv": _csv(LONG, _crowd(value))},
               refused=("may be one class or several", "--classes", "write |"))
        for name, value in _DOUBTFUL.items()
    ),
    Attack(
        name="sets with a comma in a declared class",
        arguments=_of("sets", "--classes", '"a,b",c'),
        files={"a.csv": _csv(LONG, _crowd(lambda i: ("a,b", "c")[i % 2]))},
    ),
    Attack(
        name="sets with a comma in a name beside sets with a bar",
        arguments=_of("sets"),
        files={"a.csv": _csv(LONG, _crowd(lambda i: ("arts, crafts", "news|sport")[i % 2]))},
        wrong=_column("labels", lambda i: ("arts, crafts", "news|sport")[i % 2]),
    ),
    Attack(
        name="sets that are JSON objects",
        arguments=_of("sets"),
        files={"a.csv": _csv(LONG, _crowd(lambda i: ('{"a":1}', "b")[i % 2]))},
        refused=('{"a":1}', "rows 1, 2, 3", "not a list of classes"),
    ),
    Attack(
        name="sets with look-alike letters",
        arguments=_of("sets"),
        files={"a.csv": _csv(LONG, _crowd(lambda i: ("a|b", "\u0430|b")[i % 2]))},
        says=("count as different classes and look the same",),
    ),
    Attack(
        name="rules that every set contradicts",
        arguments=_of("sets", *RULES, 'exclusive=[["a","b"]]'),
        files={"a.csv": _csv(LONG, _crowd(lambda i: "a|b"))},
        refused=("All 18 sets", "exclusive", "correct the rule"),
    ),
    Attack(
        name="an implied class that nobody names",
        arguments=_of("sets", "--classes", "a,b", *RULES, 'implies={"a":"b"}'),
        files={"a.csv": _csv(LONG, _crowd(lambda i: "a"))},
        refused=("Every set has the class 'a'", "implies", "correct the rule"),
    ),
    Attack(
        name="rules that complete sets of leaves",
        arguments=_of("sets", "--classes", "poodle,siamese,dog,cat", *RULES,
                      'implies={"poodle":"dog","siamese":"cat"}'),
        files={"a.csv": _csv(LONG, _crowd(lambda i: ("poodle", "siamese")[i % 2]))},
        wrong=_column("labels", lambda i: ("poodle|dog", "siamese|cat")[i % 2]),
    ),
)  # fmt: skip

# --------------------------------------------------------------------------------------- texts

LETTER = "Dear Ann,\n\n  well -- known   words ...\n"
_TEXTS = (
    *(
        Attack(
            name=f"unanimous texts with line breaks and punctuation, {method}",
            arguments=_of("texts", "-m", method),
            files={"a.csv": _csv(("task", "worker", "text"), _crowd(lambda i: f"{LETTER}{i} «»"))},
            wrong=_column("text", lambda i: f"{LETTER}{i} «»"),
        )
        for method in ("rover", "text-medoid", "embedding-medoid")
    ),
    Attack(
        name="half a character in a text",
        arguments=("aggregate", "a.jsonl", "--type", "texts"),
        files={
            "a.jsonl": "".join(
                json.dumps({"task": t, "worker": w, "text": "caf\ud800"}) + "\n"
                for t in TASKS for w in WORKERS
            )
        },
        refused=("a.jsonl",),
    ),
)  # fmt: skip

# --------------------------------------------------------------------------- repeated headers

MASK = '{"size":[2,2],"counts":[1,2,1]}'
_HEADERS = {
    "labels": (LONG, lambda i: "ab"[i % 2]),
    "ordered": (LONG, lambda i: str(i % 3)),
    "numbers": (LONG, lambda i: str(i / 2)),
    "sets": (LONG, lambda i: ("a|b", "b|c")[i % 2]),
    "sequences": (LONG, lambda i: "B-PER I-PER O"),
    "texts": (("task", "worker", "text"), lambda i: f"he wrote {i}"),
    "boxes": (BOXES, lambda i: ["cat", i, 0, 9, 9]),
    "masks": (("task", "worker", "mask"), lambda i: MASK),
    "rankings": (("task", "worker", "ranking"), lambda i: f"m{i} > m{i + 1}"),
    "pairs": ((*LONG, "left", "right"), lambda i: ["left", f"m{i}", f"m{i + 1}"]),
    "same": ((*LONG, "left", "right"), lambda i: ["same", f"m{i}", f"m{i + 1}"]),
}


def _repeated(kind: str) -> Attack:
    header, value = _HEADERS[kind]
    rows = _crowd(value)
    return Attack(
        name=f"a second header in a file of {kind}",
        arguments=_of(kind),
        files={"a.csv": _csv(header, [*rows[:9], list(header), *rows[9:]])},
        refused=("a.csv: row 10 repeats the names of the columns", "'task', 'worker'", "remove it"),
    )


_REPEATED = (
    *(_repeated(kind) for kind in _HEADERS),
    Attack(
        name="a second header in a wide file",
        arguments=("aggregate", "a.csv", "--wide"),
        files={"a.csv": "task,ann,bob\nt1,a,b\ntask,ann,bob\nt2,b,b\n"},
        refused=("row 2 repeats the names of the columns",),
    ),
    Attack(
        name="a header in spite of --no-header",
        arguments=("aggregate", "a.csv", "--no-header", "--columns", "task,worker,label"),
        files={"a.csv": _csv(LONG, _crowd(lambda i: "ab"[i % 2]))},
        refused=("row 1 repeats the names of the columns", "leave out --no-header"),
    ),
    Attack(
        name="ids that are names of columns",
        arguments=("aggregate", "a.csv"),
        files={"a.csv": _csv(LONG, [
            *_crowd(lambda i: "ab"[i % 2]), ["task", "ann", "label"], ["t0", "worker", "label"],
            ["task", "worker", "a"],
        ])},
    ),
)  # fmt: skip

ATTACKS = (*_SEQUENCES, *_PLACES, *_RANKINGS, *_SETS, *_TEXTS, *_REPEATED)
