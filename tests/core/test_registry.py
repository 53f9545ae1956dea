from __future__ import annotations

import pytest

import wisecrowd
from wisecrowd import aggregation
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.registry import get_method, kebab_case, method_names, methods
from wisecrowd.kinds.classes.methods import METHODS


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        ("DawidSkene", "dawid-skene"),
        ("OneCoin", "one-coin"),
        ("OneVsRest", "one-vs-rest"),
        ("FastDawidSkene", "fast-dawid-skene"),
        ("ZenCrowd", "zen-crowd"),
        ("GLAD", "glad"),
        ("MACE", "mace"),
        ("CRH", "crh"),
        ("IWMV", "iwmv"),
        ("KOS", "kos"),
        ("MMSR", "mmsr"),
        ("HierarchicalDawidSkene", "hierarchical-dawid-skene"),
        ("EBCC", "ebcc"),
        ("BWA", "bwa"),
        ("Wawa", "wawa"),
        ("ZeroBasedSkill", "zero-based-skill"),
        ("GibbsDawidSkene", "gibbs-dawid-skene"),
        ("CommunityBCC", "community-bcc"),
        ("CoupledNMF", "coupled-nmf"),
        ("SymmetricNMF", "symmetric-nmf"),
    ],
)
def test_command_line_names(cls, name):
    assert kebab_case(cls) == name


@pytest.mark.parametrize("cls", METHODS)
def test_every_location_holds_its_method(cls):
    method = getattr(aggregation, cls)
    assert issubclass(method, Aggregator)
    assert method.__name__ == cls
    assert get_method(cls) is method
    assert get_method(kebab_case(cls)) is method
    assert get_method(kebab_case(cls).replace("-", "_")) is method


def test_names_are_distinct():
    assert len(set(method_names())) == len(method_names()) == len(METHODS)
    assert set(dir(aggregation)) >= set(METHODS)


def test_every_method_says_what_it_is_for_and_where_it_comes_from():
    for info in wisecrowd.methods():
        assert info.summary.endswith("."), info
        assert info.use.startswith("Use it when "), info
        assert info.reference, info
        assert "\n" not in info.use + info.reference


def test_descriptions_come_from_the_docstring():
    info = next(info for info in methods() if info.name == "dawid-skene")
    assert info.cls == "DawidSkene"
    assert info.summary.startswith("A full confusion matrix per worker")
    assert info.use == (
        "Use it when workers confuse particular classes and have a few dozen labels each."
    )
    assert "1979" in info.reference


def test_unknown_names_get_a_suggestion():
    with pytest.raises(ParameterError, match="did you mean 'dawid-skene'"):
        get_method("dawid-sken")
    with pytest.raises(ParameterError, match="give a name"):
        get_method(3)
    with pytest.raises(AttributeError, match="NoSuchMethod"):
        aggregation.NoSuchMethod  # noqa: B018
