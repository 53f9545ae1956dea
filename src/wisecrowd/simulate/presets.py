"""Names for populations, graphs and difficulties, as the command line writes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import TypeVar

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.graphs import Assignment, Bernoulli, Dense, LongTail, PerTask, Regular
from wisecrowd.kinds.classes.simulate.confusion_workers import (
    Adversaries,
    DirichletWorkers,
    DiverseWorkers,
    MACEWorkers,
    OneCoinWorkers,
    PairwiseFlippers,
    TwoCoinWorkers,
)
from wisecrowd.kinds.classes.simulate.copiers import Colluders, Copiers
from wisecrowd.kinds.classes.simulate.difficulty import (
    BetaDifficulty,
    Difficulty,
    GivenDifficulty,
    GLADDifficulty,
    GLADWorkers,
)
from wisecrowd.kinds.classes.simulate.spammers import (
    AlwaysOneClass,
    ClassExperts,
    ClassWiseHammerSpammers,
    ExtremeSpammers,
    HammerSpammers,
    Spammers,
)
from wisecrowd.kinds.classes.simulate.worker_population import Crowd, Population, PopulationMixture

T = TypeVar("T")

POPULATIONS: Mapping[str, Callable[..., Population]] = {
    cls.kind: cls
    for cls in (
        OneCoinWorkers, TwoCoinWorkers, DirichletWorkers, HammerSpammers, ClassWiseHammerSpammers,
        PairwiseFlippers, ClassExperts, DiverseWorkers, Adversaries, Copiers, Colluders, Spammers,
        ExtremeSpammers, AlwaysOneClass, GLADWorkers, MACEWorkers,
    )
}  # fmt: skip
"""Worker populations by name."""

ASSIGNMENTS: Mapping[str, Callable[..., Assignment]] = {
    cls.kind: cls for cls in (Dense, PerTask, Regular, Bernoulli, LongTail)
}
"""Assignment graphs by name."""

DIFFICULTIES: Mapping[str, Callable[..., Difficulty]] = {
    cls.kind: cls for cls in (BetaDifficulty, GLADDifficulty)
}
"""Task difficulties by name."""

# A plus between two terms, not the one inside 1e+3.
_PLUS = re.compile(r"\+(?=\s*(?:[a-z]|[\d.]+\s*\*))")
_TERM = re.compile(r"\s*(?:(?P<size>[\d.]+)\s*\*)?\s*(?P<spec>[^*]+?)\s*")


def population(text: str) -> Population | Crowd:
    """Read a population, or a crowd composed of several.

    Parameters
    ----------
    text : str
        A name with parameters, by position or by name (``"one-coin:4,2"``,
        ``"hammer-spammer:gamma=0.6"``), or a sum: with whole numbers of workers
        (``"40*one-coin + 10*spammers"``) a `Crowd`, with shares
        (``"0.8*one-coin + 0.2*spammers"``) a `PopulationMixture` for any number of workers.

    Returns
    -------
    Population or Crowd

    Examples
    --------
    >>> population("hammer-spammer:gamma=0.6")
    HammerSpammers(gamma=0.6)
    >>> population("40*one-coin:8,2 + 10*adversaries").n_workers
    50
    """
    terms = [_TERM.fullmatch(part) for part in _PLUS.split(text)]
    if any(term is None for term in terms):
        raise ParameterError(
            f"Cannot read the workers {text!r}; write for example '40*one-coin:4,2 + 10*spammers'."
        )
    parts = [
        (term["size"], _build(term["spec"], POPULATIONS, "population")) for term in terms if term
    ]
    sizes = [size for size, _ in parts]
    if len(parts) == 1 and sizes[0] is None:
        return parts[0][1]
    if all(size is None or size.isdigit() for size in sizes):
        return Crowd([(member, int(size or 1)) for size, member in parts])
    if any(size is None or size.isdigit() for size in sizes):
        raise ParameterError(
            f"The workers {text!r} mix numbers and shares; write all as whole numbers of workers "
            "or all as shares with a point, such as 0.8."
        )
    return PopulationMixture([(member, _share(size, text)) for size, member in parts])


def assignment(text: str) -> Assignment:
    """Read an assignment graph.

    Parameters
    ----------
    text : str
        A name with parameters: ``"dense"``, ``"per-task:5"``, ``"regular:3,4"``,
        ``"bernoulli:p=0.1"``, ``"long-tail:5,exponent=1.2"``.

    Returns
    -------
    Assignment

    Examples
    --------
    >>> assignment("regular:3,4")
    Regular(per_task=3, per_worker=4)
    """
    return _build(text, ASSIGNMENTS, "assignment")


def difficulty(text: str) -> Difficulty:
    """Read a task difficulty.

    Parameters
    ----------
    text : str
        A number between 0 and 1 for all tasks, or a name with parameters: ``"beta:1,3"``,
        ``"glad:mean=1,sd=1"``.

    Returns
    -------
    Difficulty

    Examples
    --------
    >>> difficulty("beta:1,3"), difficulty("0.25")
    (BetaDifficulty(a=1, b=3), GivenDifficulty(0.25))
    """
    number = _value(text)
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return GivenDifficulty(number)
    return _build(text, DIFFICULTIES, "difficulty")


def _share(text: str | None, whole: str) -> float:
    try:
        return float(text or "")
    except ValueError as error:
        raise ParameterError(f"{text!r} in the workers {whole!r} is not a number.") from error


def _build(text: str, registry: Mapping[str, Callable[..., T]], what: str) -> T:
    name, colon, rest = (part.strip() for part in text.partition(":"))
    if name not in registry:
        near = get_close_matches(name, registry, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "choose from " + ", ".join(registry) + "."
        raise ParameterError(f"There is no {what} {name!r}; {hint}")
    if colon and not rest:
        raise ParameterError(f"{text.strip()!r} ends with a colon; add parameters or leave it out.")
    factory = registry[name]
    return factory(**_arguments(rest, list(inspect.signature(factory).parameters), name))


def _arguments(text: str, allowed: list[str], name: str) -> dict[str, object]:
    """Read ``5,exponent=1.2``: values by position first, then by name."""
    given: dict[str, object] = {}
    named = False
    names = ", ".join(allowed) or "none"
    for position, part in enumerate(text.split(",") if text else []):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        named = named or bool(equals)
        if not equals:
            if named or position >= len(allowed):
                raise ParameterError(
                    f"{part.strip()!r} has no place in the parameters of {name!r} (by position "
                    f"first, then by name), which are: {names}."
                )
            key, value = allowed[position], key
        if key not in allowed:
            raise ParameterError(f"{name!r} has no parameter {key!r}; its parameters are: {names}.")
        if key in given:
            raise ParameterError(f"Parameter {key!r} of {name!r} is given twice.")
        given[key] = _value(value)
    return given


def _value(text: str) -> object:
    """Read a number, true, false or none; anything else stays a text, for the check to refuse."""
    word = text.strip()
    words = {"true": True, "false": False, "none": None}
    if word.lower() in words:
        return words[word.lower()]
    for kind in (int, float):
        with suppress(ValueError):
            return kind(word)
    return word
