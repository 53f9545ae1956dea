"""Rules of sets: exact sums over all allowed sets, and what is refused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from wisecrowd.aggregation import LabelSetMixture
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.methods.label_rules import LabelRules

CLASSES = np.array(list("abcdef"), dtype=object)
CASES = {
    "no rules": ([], {}),
    "exclusive": ([["a", "b", "c"]], {}),
    "hierarchy": ([], {"b": "a", "c": "b", "d": "a"}),
    "both": ([["b", "c"], ["e", "f"]], {"b": "a", "c": "a", "d": "b"}),
}


def is_allowed(z, exclusive, implies):
    place = {name: k for k, name in enumerate(CLASSES)}
    one = all(sum(z[place[name]] for name in group) <= 1 for group in exclusive)
    return one and all(z[place[b]] or not z[place[a]] for a, b in implies.items())


@pytest.mark.parametrize("case", CASES)
def test_the_sums_are_those_over_all_allowed_sets(case):
    exclusive, implies = CASES[case]
    rules, rng = LabelRules.of(CLASSES, exclusive, implies), np.random.default_rng(0)
    gain, chance = 2 * rng.normal(size=(3, 6)), rng.uniform(0.05, 0.3, 6)
    total, probas = rules.posterior(gain, chance)
    place = {name: k for k, name in enumerate(CLASSES)}
    parent = {place[a]: place[b] for a, b in implies.items()}
    blocks = [tuple(place[name] for name in group) for group in exclusive]
    blocks += [(k,) for k in range(6) if not any(k in block for block in blocks)]
    mass, parts = np.zeros(3), np.zeros((3, 6))
    for z in product([0, 1], repeat=6):
        if not is_allowed(z, exclusive, implies):
            continue
        prior = 1.0
        for block in blocks:
            above = parent.get(block[0])
            if above is None or z[above]:
                inside = [chance[k] for k in block if z[k]]
                prior *= inside[0] if inside else 1 - sum(chance[k] for k in block)
        weight = prior * np.exp(gain @ np.array(z))
        mass += weight
        parts += weight[:, None] * np.array(z)
    assert np.exp(total) == pytest.approx(mass)
    assert probas == pytest.approx(parts / mass[:, None])


def test_probabilities_and_sets_are_put_in_line():
    rules = LabelRules.of(CLASSES, *CASES["both"])
    rng = np.random.default_rng(1)
    probas = rules.coherent(rng.random((50, 6)))
    assert (probas[:, 1:3].sum(axis=1) <= 1 + 1e-12).all()
    assert (probas[:, 4:].sum(axis=1) <= 1 + 1e-12).all()
    assert (probas[:, [1, 2]] <= probas[:, [0]]).all()
    assert (probas[:, 3] <= probas[:, 1]).all()
    for z in rules.allowed(rng.random((50, 6)) < 0.7, probas):
        assert is_allowed(z, *CASES["both"])


@pytest.mark.parametrize(
    ("exclusive", "implies", "message"),
    [
        ([["a", "zz"]], {}, "exclusive names 'zz'"),
        ([], {"a": "aa"}, "implies names 'aa'"),
        ([["a", "b"], ["b", "c"]], {}, "'b', which is in two groups"),
        ([["a", "b"]], {"b": "c"}, "'b', which does not imply the same class as 'a'"),
        ([], {"a": "b", "b": "a"}, "to a circle"),
    ],
)
def test_wrong_rules_are_refused(exclusive, implies, message):
    with pytest.raises(ParameterError, match=message):
        LabelRules.of(CLASSES, exclusive, implies)


def test_gold_that_the_rules_forbid_is_refused():
    rules = LabelRules.of(CLASSES, [["a", "b"]], {})
    sets = np.array([[0, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]], dtype=bool)
    with pytest.raises(DataError, match="The gold of task 'u' is 'a', 'b'"):
        rules.require_allowed(sets, np.array(["t", "u"], dtype=object), CLASSES)


def sets_of(*labels, **options):
    return CrowdSets.from_arrays(range(len(labels)), ["w"] * len(labels), list(labels), **options)


def test_rules_that_every_set_contradicts_are_refused():
    with pytest.raises(DataError, match="All 3 sets with a class of 'a', 'b' have several of them"):
        LabelSetMixture(exclusive=[["a", "b"]]).fit(sets_of("a|b", "a|b", "a|b|c", "c", ""))
    with pytest.raises(DataError, match="Every set has the class 'a', none has 'b', and implies"):
        LabelSetMixture(implies={"a": "b"}).fit(sets_of("a", "a|c", classes=list("abc")))


@pytest.mark.parametrize(
    ("labels", "rules"),
    [
        (("a|b", "a|b", "a"), {"exclusive": [["a", "b"]]}),  # one set has a single one
        (("a|b", "c", "c", "d"), {"exclusive": [["a", "b"]]}),  # most sets are about others
        (("a", "c"), {"implies": {"a": "b", "c": "d"}}),  # workers name leaves, the rule the rest
    ],
)
def test_rules_that_correct_some_sets_are_kept(labels, rules):
    fitted = LabelSetMixture(**rules).fit(sets_of(*labels, classes=list("abcd")))
    assert len(fitted.classes_) == 4
