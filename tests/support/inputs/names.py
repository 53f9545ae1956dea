"""Cases of names: what tasks, workers and classes may be called, and what is no name."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.inputs.case import (
    CLASSES,
    WORKERS,
    InputCase,
    columns,
    csv_of,
    expected,
    file_case,
    rejected,
    replaced,
    right,
    table_case,
    warned,
)

WORDS = ("label", "task", "worker", "nan", "None")
ODD = {
    "NA and null": ("NA", "null"),
    "true and false": ("true", "false"),
    "numbers with leading zeros": ("007", "7"),
    "zero and minus zero": ("0", "-0"),
    "scientific numbers": ("1e5", "100000"),
    "formulas": ("=1+1", "@SUM(A1)"),
    "commas and quotes": ("a,b", 'say "x"'),
    "line breaks": ("one\ntwo", "two\r\none"),
    "other scripts": ("Katze 🐈", "狗"),
    "escape sequences": ("\x1b[2Jcat", "\u202egod"),
    "names of output columns": ("confidence", "p_cat"),
    "paths": ("../../etc/passwd", "C:\\x"),
    "very long": ("x" * 20_000, "y" * 20_000),
    "integers beyond 64 bits as text": (str(2**64), str(2**64 + 1)),
    "neighbours of 2^53 as text": (str(2**53), str(2**53 + 1)),
}


def _word_cases() -> list[InputCase]:
    cases = []
    for word in WORDS:
        cases += [
            table_case(
                f"a class named {word}",
                right(expected(classes=(word,))),
                columns(classes=(word,)),
            ),
            table_case(f"a worker named {word}", right(), columns(workers=(word,))),
            table_case(
                f"a task named {word}", right(expected(tasks=(word,))), columns(tasks=(word,))
            ),
        ]
    return cases


def _odd_cases() -> list[InputCase]:
    return [
        table_case(
            f"ids that are {what}",
            right(expected(tasks=pair, classes=pair)),
            columns(tasks=pair, workers=pair, classes=pair),
        )
        for what, pair in ODD.items()
    ]


def _empty_cases() -> list[InputCase]:
    cases = []
    for role in ("task", "worker", "label"):
        for what, value in (("empty", ""), ("only spaces", "   ")):
            remedy = "abstain=''" if role == "label" else f"fill in the {role}"
            in_shell = "--abstain ''" if role == "label" else remedy
            cases.append(
                table_case(
                    f"a {role} that is {what}",
                    rejected(f"The {role} column is empty in rows 3, 10", remedy,
                             shell=(f"The {role} column is empty in rows 3, 10 of a.csv",
                                    in_shell)),
                    replaced(role, (2, 9), value),
                )
            )  # fmt: skip
    cases.append(
        table_case(
            "an empty label declared an abstention", right(), replaced("label", (2, 9), ""),
            options={"abstain": ""}, arguments=("--abstain", ""),
        )
    )  # fmt: skip
    return cases


def _undisputed(**names: Sequence[str]) -> dict[str, str]:
    """Return the labels of the tasks on which no worker used the twin of a class."""
    return {task: label for task, label in expected(**names).items() if task not in ("t00", "t02")}


def _twin_cases() -> list[InputCase]:
    cases = []
    for what, twin in (("a space behind", "cat "), ("a tab in front", "\tcat"), ("case", "Cat")):
        cases.append(
            table_case(
                f"classes that differ by {what}",
                warned(repr("cat"), repr(twin), "count as different classes", "classes=[...]",
                       shell=("count as different classes", "--classes"), labels=_undisputed()),
                replaced("label", (1, 9), twin),
            )
        )  # fmt: skip
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    return [
        *cases,
        table_case(
            "classes that differ by Unicode form",
            warned("count as different classes", labels=_undisputed(classes=(composed,))),
            replaced("label", (1, 9), decomposed, classes=(composed,)),
        ),
        table_case(
            "workers that differ by a space",
            warned("'ann' and 'ann ' count as different workers", "make them one"),
            replaced("worker", (0, 4), "ann "),
        ),
        table_case(
            "workers that differ by case",
            warned("count as different workers"),
            replaced("worker", (0, 4), "Ann"),
        ),
        table_case(
            "tasks that differ by a space",
            warned("'t00' and 't00 ' count as different tasks", labels={}),
            replaced("task", (0,), "t00 "),
        ),
        table_case(
            "tasks that differ by case",
            right(expected(tasks=("aB", "Ab"))),
            columns(tasks=("aB", "Ab")),
        ),
    ]


def _declared_cases() -> list[InputCase]:
    twice, text = ["cat", "dog", "cat"], "cat,dog,cat"
    return [
        table_case(
            "classes declared, one of them never chosen", right(may_refuse=True),
            options={"classes": ["cat", "cow", "dog"]}, arguments=("--classes", "cat,cow,dog"),
        ),
        table_case(
            "a label outside the declared classes",
            rejected("Label 'dog'", "in rows 4, 5", "did you mean 'dig'", "add it to classes"),
            replaced("label", (), ""),
            options={"classes": ["cat", "dig"]}, arguments=("--classes", "cat,dig"),
        ),
        table_case(
            "classes declared twice",
            rejected("declared classes must be distinct", "'cat' is named twice"),
            options={"classes": twice}, arguments=("--classes", text),
        ),
        table_case(
            "classes declared as one text", rejected("classes", "'cat,dog'", "list"),
            options={"classes": "cat,dog"}, file=None,
        ),
        table_case(
            "no classes declared", rejected("declared classes must be distinct and not empty"),
            options={"classes": []}, arguments=("--classes", ""),
        ),
        table_case(
            "a label declared an abstention", right(), replaced("label", (3, 9), "?"),
            options={"abstain": "?"}, arguments=("--abstain", "?"),
        ),
        table_case(
            "every label an abstention", rejected("There are no annotations"),
            options={"abstain": list(CLASSES)}, arguments=("--abstain", "cat", "--abstain", "dog"),
        ),
        table_case(
            "workers declared, one of them missing",
            rejected("Worker 'dee'", "row", "declared workers", "add it to workers"),
            options={"workers": list(WORKERS[:3])}, file=None,
        ),
        file_case(
            "a class whose name needs a column of its own", right(), csv_of(columns()),
            arguments=("--soft",),
        ),
    ]  # fmt: skip


CASES = (
    *_word_cases(), *_odd_cases(), *_empty_cases(), *_twin_cases(), *_declared_cases(),
)  # fmt: skip
