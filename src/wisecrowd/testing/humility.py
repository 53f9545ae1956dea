"""Checks of all kinds: two who contradict each other give a tie, and one worker no certainty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from wisecrowd.core.answers import MOST_ALONE, ONE_WORKER
from wisecrowd.core.kinds import get_kind
from wisecrowd.core.result import dense_rows
from wisecrowd.kinds.boxes.container import CrowdRegions
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.masks.container import CrowdMasks
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.rankings.container import CrowdRankings
from wisecrowd.kinds.same.container import CrowdSame
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.texts.container import CrowdTexts
from wisecrowd.testing.foundation import Make, check, fit_or_refusal, require

NEAR = 0.15  # tolerated distance of the probability of one of two from one half
MOST_OUTSIDE = 0.8  # probability of O where one of two marks a span: most tokens are outside
ROUNDING = 1e-9
TOLD = ("no-clusters",)  # findings that say that claims are those of the model


class Case(NamedTuple):
    """Labels that show little, and what may be claimed of them.

    Attributes
    ----------
    what : str
    data : Annotations
    excess : function of a fitted method
        Returns how far its claims exceed what is tolerated; above 0 is too much.
    alone : bool
        Whether all labels are by one worker.
    """

    what: str
    data: Any
    excess: Callable[[Any], float]
    alone: bool = False


@check
def check_ties_and_single_workers(make: Make) -> None:
    """Require a tie of two who contradict each other, and a cap and a finding for one worker."""
    method = make()
    kind = get_kind(method.takes)
    require(
        method.takes in CASES or not kind.package,
        f"CASES of {__name__} has no labels that show little for the kind {kind.name!r}",
    )
    if method.takes not in CASES:
        return
    for case in CASES[method.takes](method):
        fitted = fit_or_refusal(make(), case.data)
        if fitted is None:
            continue
        found = {finding.id for finding in fitted.findings_}
        require(not case.alone or ONE_WORKER in found, f"{case.what}: no finding {ONE_WORKER!r}")
        excess = case.excess(fitted)
        told = not case.alone and any(
            finding.id in TOLD and finding.severity in ("medium", "high")
            for finding in fitted.findings_
        )
        require(
            excess <= ROUNDING or told,
            f"{case.what}: a claim is {excess:.3f} above what the labels support",
        )


def _rows(*rows: tuple[Any, ...]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _classes(method: Any) -> Iterator[Case]:
    kind = method._kind()
    declared = {"type": kind.name} if kind.declared else {}  # of classes, only ordered ones
    two = [("t", "x", "a"), ("t", "y", "b")]
    cases = {
        "one task a|b": (two, "ab"),
        "one task a|b|b|a": ([*two, ("t", "z", "b"), ("t", "v", "a")], "ab"),
        "four tasks a|b": ([(f"t{i}", w, v) for i in range(4) for _, w, v in two], "ab"),
        "thirty tasks a|b": ([(f"t{i}", w, v) for i in range(30) for _, w, v in two], "ab"),
        "two mirrored tasks": ([*two, ("u", "x", "b"), ("u", "y", "a")], "ab"),
        "one task a|b|c": ([*two, ("t", "z", "c")], "abc"),
    }
    for what, (rows, classes) in cases.items():
        if len(classes) > 2 and (method.tags().binary or declared):
            continue  # the middle of three ordered classes is the best answer, not a tie
        data = CrowdLabels.from_arrays(*_rows(*rows), classes=list(classes), **declared)
        yield Case(what, data, _most_probable(1 / len(classes) + NEAR))
    for what, n in (("one worker", 6), ("one label", 1)):
        rows = [(f"t{i}", "x", "ab"[i % 2]) for i in range(n)]
        data = CrowdLabels.from_arrays(*_rows(*rows), classes=["a", "b"], **declared)
        yield Case(what, data, _most_probable(MOST_ALONE), alone=True)


def _most_probable(limit: float) -> Callable[[Any], float]:
    return lambda fit: _largest(fit.probas_) - limit


def _numbers(method: Any) -> Iterator[Case]:
    def off(fit: Any) -> float:
        return float(np.abs(fit.values_ - 5).max()) - 0.5

    def narrow(fit: Any) -> float:
        return max(off(fit), float(fit.low_.max()), 10 - float(fit.high_.min()))

    one = CrowdNumbers.from_arrays(["t", "t"], ["x", "y"], [0.0, 10.0])
    yield Case("one task 0|10", one, narrow)
    task = np.repeat(np.arange(4), 2)
    several = CrowdNumbers.from_arrays(task, ["x", "y"] * 4, [0.0, 10.0] * 4)
    yield Case("four tasks 0|10", several, narrow if method.get_params().get("bias") else off)
    single = CrowdNumbers.from_arrays(["t"], ["x"], [3.5])
    yield Case("one number", single, lambda fit: 3.5 - float(fit.high_[0] - fit.low_[0]), True)


def _pairs(method: Any) -> Iterator[Case]:
    def apart(limit: float) -> Callable[[Any], float]:
        return lambda fit: max(float(np.ptp(fit.scores_)) - limit, float(fit.high_.max()) - 10)

    rows = _rows(("t", "v", "x", "y", "left"), ("u", "w", "x", "y", "right"))
    yield Case("x>y|y>x", CrowdPairs.from_arrays(*rows), apart(0.1))
    later = CrowdPairs.from_arrays(*rows, timestamp=[1.0, 2.0])  # the second vote may count more
    yield Case("x>y, later y>x", later, apart(NEAR))
    rows = _rows(*((f"t{i}", "v", "x", "y", "left") for i in range(20)))
    data = CrowdPairs.from_arrays(*rows, timestamp=np.arange(20.0))
    yield Case("20 votes of one worker", data, lambda fit: fit.p_best_.max() - MOST_ALONE, True)


def _rankings(method: Any) -> Iterator[Case]:
    data = CrowdRankings.from_arrays(["t", "u"], ["v", "w"], [["x", "y"], ["y", "x"]])
    yield Case("x>y|y>x", data, lambda fit: float(np.ptp(fit.scores_)) - 0.1)
    data = CrowdRankings.from_arrays(list("abcdef"), ["v"] * 6, [["x", "y", "z"]] * 6)
    yield Case("one worker", data, lambda fit: fit.p_best_.max() - MOST_ALONE, True)


def _sequences(method: Any) -> Iterator[Case]:
    def most(limit: float) -> Callable[[Any], float]:
        return lambda fit: float(fit.span_confidence_.max(initial=0.0)) - limit

    def tied(disputed: list[int], tag: float) -> Callable[[Any], float]:
        def excess(fit: Any) -> float:
            tokens = fit.marginals_.reshape(-1, 3, fit.marginals_.shape[1])[:, disputed]
            return max(most(0.5 + NEAR)(fit), _largest(tokens) - tag)

        return excess

    for what, other, disputed, tag in (
        ("B-X|B-Y", "B-Y O O", [0], 0.5 + NEAR),
        ("B-X|O", "O O O", [0], MOST_OUTSIDE),
        ("B-X and B-Y", "O O B-Y", [0, 2], MOST_OUTSIDE),
    ):
        data = CrowdSequences.from_arrays(["t", "t"], ["x", "y"], ["B-X O O", other])
        yield Case(what, data, tied(disputed, tag))
        rows = _rows(*((i, w, v) for i in range(6) for w, v in (("x", "B-X O O"), ("y", other))))
        yield Case(f"six times {what}", CrowdSequences.from_arrays(*rows), tied(disputed, tag))
    rows = _rows(*((i, "x", "B-X O O") for i in range(6)))
    yield Case("one worker", CrowdSequences.from_arrays(*rows), most(MOST_ALONE), True)


def _sets(method: Any) -> Iterator[Case]:
    def uneven(fit: Any) -> float:
        return float(np.abs(fit.probas_ - 0.5).max()) - NEAR

    data = CrowdSets.from_arrays(["t", "t"], ["x", "y"], [["a"], ["b"]])
    yield Case("{a}|{b}", data, uneven)
    rows = _rows(*((i, w, v) for i in range(4) for w, v in (("x", ["a"]), ("y", ["b"]))))
    yield Case("four times {a}|{b}", CrowdSets.from_arrays(*rows), uneven)
    rows = _rows(*((i, "x", [["a"], ["a", "b"], ["b", "c"]][i % 3]) for i in range(12)))
    data = CrowdSets.from_arrays(*rows)
    yield Case("one worker", data, lambda fit: _largest(fit.probas_) - MOST_ALONE, True)


def _same(method: Any) -> Iterator[Case]:
    rows = _rows(("t", "x", "a", "b", "same"), ("u", "y", "a", "b", "different"))
    data = CrowdSame.from_arrays(*rows)
    yield Case("same|different", data, lambda fit: float(np.abs(fit.p_same_ - 0.5).max()) - NEAR)
    pairs = [(a, b) for a in range(6) for b in range(a)]
    answers = ["same" if a % 2 == b % 2 else "different" for a, b in pairs]
    left, right = zip(*pairs, strict=True)
    data = CrowdSame.from_arrays(range(len(pairs)), ["x"] * len(pairs), left, right, answers)
    yield Case(
        "one worker", data,
        lambda fit: max(_largest(fit.item_probas_), _largest(fit.p_same_)) - MOST_ALONE, True,
    )  # fmt: skip


def _boxes(method: Any) -> Iterator[Case]:
    def most(limit: float) -> Callable[[Any], float]:
        return lambda fit: float(fit.box_confidence_.max(initial=0.0)) - limit

    rows = _rows(("t", "x", 10, 10, 20, 20, "c"), ("t", "y", 60, 10, 20, 20, "c"))
    yield Case("drawn by one of two", CrowdRegions.from_arrays(*rows), most(0.5))
    rows = _rows(("t", "x", 10, 10, 20, 20, "a"), ("t", "y", 10, 10, 20, 20, "b"))
    yield Case("one box, a|b", CrowdRegions.from_arrays(*rows), most(0.5 + NEAR))
    rows = _rows(*((i, "x", 10, 10, 20, 20, "c") for i in range(6)))
    yield Case("one worker", CrowdRegions.from_arrays(*rows), most(MOST_ALONE), True)


def _texts(method: Any) -> Iterator[Case]:
    def most(limit: float) -> Callable[[Any], float]:
        return lambda fit: max(_largest(fit.confidence_), _largest(fit.word_confidence_)) - limit

    data = CrowdTexts.from_arrays(["t", "t"], ["x", "y"], ["the cat", "a dog"])
    yield Case("the cat|a dog", data, most(0.5 + NEAR))
    data = CrowdTexts.from_arrays(range(6), ["x"] * 6, ["the cat"] * 6)
    yield Case("one worker", data, most(MOST_ALONE), True)


def _masks(method: Any) -> Iterator[Case]:
    inside, other, nothing = np.zeros((3, 9, 9), dtype=int)
    inside[1:5, 1:5], other[5:9, 5:9] = 1, 1

    def most(limit: float) -> Callable[[Any], float]:
        return lambda fit: max(_largest(fit.confidence_), _largest(fit.soft_value_)) - limit

    for what, second in (("two masks apart", other), ("marked by one of two", nothing)):
        data = CrowdMasks.from_arrays(["t", "t"], ["x", "y"], [inside, second])
        yield Case(what, data, most(0.5 + NEAR))
    data = CrowdMasks.from_arrays(range(3), ["x"] * 3, [inside, other, inside])
    yield Case("one worker", data, most(MOST_ALONE), True)


def _largest(values: Any) -> float:
    return float(np.max(dense_rows(values), initial=0.0))


CASES: dict[str, Callable[[Any], Iterator[Case]]] = {
    "labels": _classes,
    "ordered": _classes,
    "numbers": _numbers,
    "pairs": _pairs,
    "rankings": _rankings,
    "sequences": _sequences,
    "sets": _sets,
    "boxes": _boxes,
    "same": _same,
    "texts": _texts,
    "masks": _masks,
}
