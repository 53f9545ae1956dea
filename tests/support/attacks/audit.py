"""Attacks on honesty: ties, crowds of models and classes that are abstentions."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

from tests.support.attacks.attack import Attack

MODELS = ("gpt-4o", "claude-3", "gemini-pro")


def _file(rows: list[tuple[str, str, str]]) -> dict[str, str]:
    lines = ["task,worker,label", *(",".join(row) for row in rows)]
    return {"answers.csv": "\n".join(lines) + "\n"}


def _contradicting(n_tasks: int) -> dict[str, str]:
    return _file([(f"t{i}", w, y) for i in range(n_tasks) for w, y in (("x", "a"), ("y", "b"))])


def _judged(workers: tuple[str, ...], third: str = "c") -> dict[str, str]:
    names = ("a", "b", third)
    return _file([
        (f"t{i}", w, names[(i + (j if i % 4 == 0 else 0)) % 3])
        for i in range(24) for j, w in enumerate(workers)
    ])  # fmt: skip


def _sure(folder: Path, out: str) -> str:
    most = max(float(row["confidence"]) for row in csv.DictReader(io.StringIO(out)))
    return f"confidence {most} where two contradict each other" if most > 0.65 else ""


def _finds(name: str, wanted: bool) -> Callable[[Path, str], str]:
    def judge(folder: Path, out: str) -> str:
        found = name in {finding["id"] for finding in json.loads(out)["findings"]}
        return "" if found == wanted else f"{name} {'is missing' if wanted else 'is found'}"

    return judge


def _prints(words: str, wanted: bool) -> Callable[[Path, str], str]:
    def judge(folder: Path, out: str) -> str:
        return "" if (words in out) == wanted else f"{words!r} {'missing' if wanted else 'shown'}"

    return judge


GOLD = {"gold.csv": "task,label\n" + "".join(f"t{i},a\n" for i in range(5))}
AUDIT = ("audit", "answers.csv", "--part", "models", "--json")

ATTACKS = (
    *(
        Attack(name=f"{n} tasks on which two contradict each other, {method}",
               arguments=("aggregate", "answers.csv", "-m", method, "-o", "-"),
               files=_contradicting(n), claims=_sure)
        for n in (1, 4, 30)
        for method in ("mace", "community-bcc", "worker-clusters", "ebcc", "coupled-tensor", "auto")
    ),
    Attack(name="judges are all models", arguments=AUDIT, files=_judged(MODELS),
           wrong=_finds("model-workers", True)),
    Attack(name="one judge is a person", arguments=AUDIT, files=_judged((*MODELS, "ann")),
           wrong=_finds("model-workers", False)),
    Attack(name="judges are all models, with known answers",
           arguments=(*AUDIT, "--gold", "gold.csv"), files={**_judged(MODELS), **GOLD},
           wrong=_finds("model-workers", False)),
    Attack(name="a class is called unsure", arguments=("inspect", "answers.csv"),
           files=_judged(("x", "y", "z"), "unsure"), wrong=_prints("--abstain unsure", True)),
    Attack(name="a class is called other", arguments=("inspect", "answers.csv"),
           files=_judged(("x", "y", "z"), "other"), wrong=_prints("--abstain", False)),
    Attack(name="a class called unsure is declared",
           arguments=("aggregate", "answers.csv", "--abstain", "unsure", "-o", "-"),
           files=_judged(("x", "y", "z"), "unsure"), wrong=_prints("unsure", False)),
)  # fmt: skip
