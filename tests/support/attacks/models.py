"""Labels that show little: other scales, one worker, contradictions; nothing may be claimed."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

from tests.support.attacks.attack import Attack

from wisecrowd.core.answers import MOST_ALONE

Judge = Callable[[Path, str], str]


def table(header: str, *rows: tuple[object, ...]) -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


def read(out: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(out)))


def at_most(limit: float, *columns: str) -> Judge:
    """Return a judge of probabilities: every number in these columns is at most the limit."""

    def judge(folder: Path, out: str) -> str:
        claims = [
            float(row[name])
            for row in read(out)
            for name in row
            if name in columns or ("p_" in columns and name.startswith("p_"))
        ]
        if not claims:
            return f"no {columns} in {out[:100]}"
        return f"{max(claims)} above {limit}" * (max(claims) > limit + 1e-6)

    return judge


def inside_the_labels(labels: dict[str, list[float]]) -> Judge:
    """Return a judge of numbers: values lie inside their task's labels, intervals hold them."""

    def judge(folder: Path, out: str) -> str:
        for row in read(out):
            own, slack = labels[row["task"]], 1e-6
            value, low, high = (float(row[name]) for name in ("value", "low", "high"))
            if not min(own) - slack <= value <= max(own) + slack:
                return f"{value} for {own}"
            if low > min(own) + slack or high < max(own) - slack:
                return f"[{low}, {high}] for {own}"
        return ""

    return judge


def aggregate(kind: str, *more: str) -> tuple[str, ...]:
    return ("aggregate", "a.csv", "--type", kind, *more)


FACTORS = {"a": 1, "b": 1, "c": 1000, "d": 1000}
TWO_SCALES = [(f"t{i}", w, i * f) for i in range(10) for w, f in FACTORS.items()]
BY_TASK = {f"t{i}": [float(i), 1000.0 * i] for i in range(10)}
NUMBER_METHODS = (
    "mean", "median", "trimmed-mean", "gaussian-em", "student-em", "numeric-crh", "catd",
    "noise-levels",
)  # fmt: skip
MANY = 12

SCALES = tuple(
    Attack(
        name=f"two scales, {method}", arguments=aggregate("numbers", "-m", method),
        files={"a.csv": table("task,worker,label", *TWO_SCALES)},
        says=("scales", "'c', 'd'", "1e+03 times"), wrong=inside_the_labels(BY_TASK),
    )
    for method in NUMBER_METHODS
)  # fmt: skip

# One worker in a whole file, who is meant.
ALONE: tuple[tuple[str, str, tuple[tuple[object, ...], ...], tuple[str, ...]], ...] = (
    ("labels", "task,worker,label", tuple((i, "x", "ab"[i % 2]) for i in range(MANY)),
     ("confidence",)),
    ("ordered", "task,worker,label", tuple((i, "x", 1 + i % 3) for i in range(MANY)),
     ("confidence",)),
    ("sets", "task,worker,labels", tuple((i, "x", ("a", "a|b", "b|c")[i % 3]) for i in range(MANY)),
     ("p_",)),
    ("sequences", "task,worker,tags", tuple((i, "x", "B-X O O") for i in range(MANY)),
     ("confidence",)),
    ("boxes", "task,worker,x,y,width,height",
     tuple((i, "x", 10, 10, 20, 20) for i in range(MANY)), ("confidence",)),
    ("same", "task,worker,left,right,answer",
     tuple((f"{a}-{b}", "x", f"i{a}", f"i{b}", "same" if (a - b) % 2 == 0 else "different")
           for a in range(6) for b in range(a)), ("probability",)),
    ("texts", "task,worker,text", tuple((i, "x", f"cat {i} sat") for i in range(MANY)),
     ("confidence",)),
)  # fmt: skip


def alone(
    kind: str, header: str, rows: tuple[tuple[object, ...], ...], columns: tuple[str, ...]
) -> Attack:
    """Return a file of one worker."""
    return Attack(
        name=f"one worker, {kind}", arguments=aggregate(kind, "--accept", "one-worker"),
        files={"a.csv": table(header, *rows)},
        says=("one worker ('x')",), claims=at_most(MOST_ALONE, *columns),
    )  # fmt: skip


def narrow(folder: Path, out: str) -> str:
    row = read(out)[0]
    low, high = float(row["low"]), float(row["high"])
    return "" if high - low > 3.5 else f"[{low}, {high}] for one number"


def not_comparable(folder: Path, out: str) -> str:
    widest = max(abs(float(row["high"])) for row in read(out))
    return "" if widest < 10 else f"±{widest}"


CONTRADICTIONS = (
    Attack(
        name="one number", arguments=aggregate("numbers"),
        files={"a.csv": table("task,worker,label,weight", ("t", "x", 3.5, 1), ("t", "y", 3.5, 0))},
        says=("one worker ('x')",), claims=narrow,
    ),
    *(
        Attack(
            name=f"two opposite votes, {' '.join(method)}",
            arguments=("aggregate", "a.csv", "--type", "pairs", "-m", *method),
            files={"a.csv": table("task,worker,left,right,winner", ("t", "u", "x", "y", "left"),
                                  ("s", "v", "x", "y", "right"))},
            says=says, claims=not_comparable,
        )
        for method, says in (
            (("auto",), ("There are 2 workers, too few",)),
            (("crowd-bt",), ("There are 2 workers, too few",)),
            (("crowd-bt", "-p", "prior=wide"), ("not comparable yet",)),
        )
    ),
    Attack(
        name="two who mark other spans", arguments=aggregate("sequences"),
        files={"a.csv": table("task,worker,tags", *(
            (i, w, tags) for i in range(8) for w, tags in (("x", "B-A O O O"), ("y", "O O B-B O"))
        ))},
        claims=lambda folder, out: (
            "" if not read(out) else at_most(0.65, "confidence")(folder, out)
        ),
    ),
    Attack(
        name="two sets apart", arguments=aggregate("sets"),
        files={"a.csv": table("task,worker,labels", *(
            (i, w, v) for i in range(8) for w, v in (("x", "a"), ("y", "b"))
        ))},
        claims=at_most(0.65, "p_"),
    ),
)  # fmt: skip


def exactly(**expected: float) -> Judge:
    """Return a judge of near misses: the first row has these numbers, to three digits."""

    def judge(folder: Path, out: str) -> str:
        row = read(out)[0]
        for name, value in expected.items():
            if abs(float(row[name]) - value) > 5e-4:
                return f"{name} is {row[name]}, not {value}"
        return ""

    return judge


NEAR_MISSES = (
    Attack(
        name="a bias is not another scale", arguments=aggregate("numbers", "-m", "gaussian-em"),
        files={"a.csv": table("task,worker,label", *(
            (f"t{i:02d}", w, 1 + i % 7 + 2 * (w == "c")) for i in range(14) for w in "abc"
        ))},
        wrong=lambda folder, out: (
            "" if float(read(out)[0]["high"]) < 4 else f"too wide: {out[:200]}"
        ),
    ),
    Attack(
        name="three who agree are believed", arguments=aggregate("labels"),
        files={"a.csv": table("task,worker,label", *(
            (i, w, "ab"[i % 2]) for i in range(40) for w in "xyz"
        ))},
        wrong=lambda folder, out: (
            "" if float(read(out)[0]["confidence"]) > 0.9 else f"too shy: {out[:200]}"
        ),
    ),
    Attack(
        name="one worker with gold is known",
        arguments=("aggregate", "a.csv", "-m", "majority-vote", "--gold", "gold.csv"),
        files={
            "a.csv": table("task,worker,label,weight", *(
                (f"t{i}", "x", "ab"[i % 2], 1) for i in range(20)
            ), ("t0", "y", "a", 0)),
            "gold.csv": table("task,label", ("t0", "a"), ("t1", "b")),
        },
        wrong=exactly(confidence=1.0),
    ),
)  # fmt: skip

ATTACKS = (*SCALES, *(alone(*one) for one in ALONE), *CONTRADICTIONS, *NEAR_MISSES)
