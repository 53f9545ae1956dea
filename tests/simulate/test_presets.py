from __future__ import annotations

import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one-coin", simulate.OneCoinWorkers()),
        ("one-coin:8,2", simulate.OneCoinWorkers(8, 2)),
        (" one-coin : a=8 , b = 2.5 ", simulate.OneCoinWorkers(8, 2.5)),
        ("one-coin:8,b=1e+1", simulate.OneCoinWorkers(8, 10)),
        ("hammer-spammer:gamma=0.6", simulate.HammerSpammers(0.6)),
        ("class-wise-experts:2,q=none", simulate.ClassExperts(2)),
        ("adversaries:fixed=true", simulate.Adversaries(fixed=True)),
        ("3*one-coin", 3 * simulate.OneCoinWorkers()),
        (
            "40*one-coin:8,2 + 10*spammers+copiers:0.5,sources=3",
            40 * simulate.OneCoinWorkers(8, 2)
            + 10 * simulate.Spammers()
            + simulate.Copiers(0.5, sources=3),
        ),
        (
            "0.8*one-coin + 0.2*extreme-spammers",
            simulate.PopulationMixture(
                [(simulate.OneCoinWorkers(), 0.8), (simulate.ExtremeSpammers(), 0.2)]
            ),
        ),
    ],
)
def test_populations(text, expected):
    assert simulate.population(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dense", simulate.Dense()),
        ("per-task:5", simulate.PerTask(5)),
        ("per-task", simulate.PerTask()),
        ("regular:3,4", simulate.Regular(3, 4)),
        ("regular:per_worker=6,per_task=2", simulate.Regular(2, 6)),
        ("bernoulli:p=0.1", simulate.Bernoulli(0.1)),
        ("long-tail:5,exponent=1.2", simulate.LongTail(5, 1.2)),
    ],
)
def test_assignments(text, expected):
    assert simulate.assignment(text) == expected


def test_difficulties():
    assert simulate.difficulty("beta:2,5") == simulate.BetaDifficulty(2, 5)
    assert simulate.difficulty("glad:sd=0.5") == simulate.GLADDifficulty(sd=0.5)
    assert float(simulate.difficulty("0.25").values) == 0.25


@pytest.mark.parametrize(
    "name",
    [
        "one-coin",
        "two-coin",
        "hammer-spammer",
        "pairwise-flipper",
        "class-wise-experts",
        "adversaries",
        "copiers",
        "always-one-class",
        "extreme-spammers",
        "diverse",
        "dirichlet",
    ],
)
def test_the_names_promised_exist_and_need_no_parameters(name):
    assert simulate.population(name).kind == name


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (simulate.population, "hamer-spammer", "did you mean 'hammer-spammer'"),
        (simulate.population, "xyz", "choose from one-coin, two-coin"),
        (simulate.population, "", "Cannot read the workers ''"),
        (simulate.population, "one-coin:c=1", "no parameter 'c'; its parameters are: a, b"),
        (simulate.population, "one-coin:1,2,3", "'3' has no place"),
        (simulate.population, "one-coin:a=1,2", "'2' has no place"),
        (simulate.population, "one-coin:1,a=2", "'a' of 'one-coin' is given twice"),
        (simulate.population, "one-coin:", "ends with a colon"),
        (simulate.population, "one-coin:a=many", "^a is 'many'; give a finite number"),
        (simulate.population, "0*one-coin", "number of workers"),
        (simulate.population, "2*one-coin + 0.5*spammers", "mix numbers and shares"),
        (simulate.population, "0.5*one-coin + spammers", "mix numbers and shares"),
        (simulate.population, "1.2.3*one-coin", "'1.2.3' .* is not a number"),
        (simulate.population, "2*3*one-coin", "Cannot read the workers"),
        (simulate.assignment, "per-tsk:5", "did you mean 'per-task'"),
        (simulate.assignment, "per-task:five", "^r is 'five'; give an integer of at least 1"),
        (simulate.assignment, "dense:3", "which are: none"),
        (simulate.difficulty, "2", "between 0 and 1"),
        (simulate.difficulty, "alpha:1", "no difficulty 'alpha'"),
    ],
)
def test_what_cannot_be_read(parse, text, message):
    with pytest.raises(ParameterError, match=message):
        parse(text)
