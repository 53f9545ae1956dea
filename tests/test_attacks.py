"""Every attack is answered rightly, or refused by one clear sentence."""

from __future__ import annotations

import pytest
from tests.support.attacks import Attack, every_attack, run_attack
from tests.support.inputs.judging import Outcome

CSV = "task,worker,label\n" + "".join(f"t{i},{w},{'ab'[i % 2]}\n" for i in range(6) for w in "xyz")
GOOD = ("aggregate", "a.csv", "-o", "b.csv")


@pytest.mark.parametrize("attack", every_attack(), ids=lambda attack: attack.name)
def test_attack(attack):
    result = run_attack(attack)
    assert result.outcome.good, f"{result.outcome.value}: {result.detail}"


def test_names_are_unique():
    names = [attack.name for attack in every_attack()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        ({}, Outcome.RIGHT),
        ({"refused": ("column",)}, Outcome.SILENTLY_ACCEPTED),
        ({"says": ("no such words",)}, Outcome.SILENTLY_ACCEPTED),
        ({"wrong": lambda folder, out: "it is wrong"}, Outcome.SILENTLY_WRONG),
        ({"claims": lambda folder, out: "1.0 by one worker"}, Outcome.OVERCONFIDENT),
        ({"seconds": 0.0}, Outcome.OVER_BUDGET),
        ({"files": {"a.csv": "task,worker\n1,a\n"}}, Outcome.WRONGLY_REFUSED),
        ({"files": {"a.csv": "task,worker\n1,a\n"}, "refused": ("label",)}, Outcome.REJECTED),
        ({"files": {"a.csv": "task,worker\n1,a\n"}, "refused": ("moon",)}, Outcome.OBSCURE),
    ],
)
def test_the_judge_tells_every_outcome(given, outcome):
    attack = Attack(**({"name": "x", "arguments": GOOD, "files": {"a.csv": CSV}} | given))
    assert run_attack(attack).outcome is outcome
