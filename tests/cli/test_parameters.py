from __future__ import annotations

import pytest

from wisecrowd.cli.run.parameters import configured_method, parse_value
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.option_spelling import shell_spelling


@pytest.mark.parametrize(
    ("text", "default", "value"),
    [
        ("20", 100, 20),
        ("1", 1e-6, 1.0),
        ("1e-3", 1e-6, 1e-3),
        ("true", False, True),
        ("False", True, False),
        ("none", "weak", None),
        ("none", 0, None),
        ("weak", "weak", "weak"),
        ("0.5", "weak", 0.5),
        ("[[3, 1], [1, 3]]", "weak", [[3, 1], [1, 3]]),
        ("[0.7, 0.3]", "auto", [0.7, 0.3]),
        ('"5"', "auto", "5"),
        ("a=b", "auto", "a=b"),
    ],
)
def test_text_becomes_the_value_it_means(text, default, value):
    parsed = parse_value("x", text, default)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("text", "default", "message"),
    [
        ("many", 100, "give a number"),
        ("true", 100, "give a number"),
        ("small", 1e-6, "give a number"),
        ("perhaps", False, "give true or false"),
        ("1", False, "give true or false"),
        ("[1, 2", "weak", "looks like JSON"),
    ],
)
def test_wrong_kinds_are_refused(text, default, message):
    with pytest.raises(ParameterError, match=message):
        parse_value("x", text, default)


def test_parameters_of_another_method_need_its_name():
    with shell_spelling(), pytest.raises(ParameterError) as caught:
        configured_method("auto", ["max_iter=20"], seed=None)
    assert str(caught.value) == (
        "auto has no parameter 'max_iter'; it has candidates, class_prior. "
        "To set a parameter of another method, name a method with -m."
    )


def test_parameters_reach_the_method():
    method = configured_method("dawid-skene", ["max_iter=7", "tol=0", "prior=none"], seed=5)
    params = method.get_params()
    assert (params["max_iter"], params["tol"], params["prior"]) == (7, 0.0, None)
    assert params["random_state"] == 5


def test_parameters_and_seed_of_a_method_inside_another():
    method = configured_method("one-vs-rest", ["method=mace", "method__max_iter=7"], seed=5)
    assert type(method.method).__name__ == "MACE"
    assert method.method.max_iter == 7
    assert method.method.random_state == 5


def test_seed_of_a_method_without_any():
    assert configured_method("majority-vote", [], seed=5).get_params() is not None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["max_itre=3"], r"no parameter 'max_itre' \(did you mean 'max_iter'"),
        (["colour=red"], r"no parameter 'colour'; it has prior, class_prior"),
        (["max_iter"], r"not of the form NAME=VALUE"),
        (["=3"], r"not of the form NAME=VALUE"),
        (["tol=1", "tol=2"], r"-p tol is given twice"),
        (["max_iter=0"], r"max_iter is 0; give an integer of at least 1"),
        (["max_iter=2.5"], r"max_iter is 2.5"),
        (["tol__x=2"], r"tol of dawid-skene has no parameters"),
        (["random_state=3"], r"--seed and -p random_state"),
    ],
)
def test_wrong_parameters_are_explained(given, message):
    with pytest.raises(ParameterError, match=message):
        configured_method("dawid-skene", given, seed=1)


def test_json_that_is_nested_without_an_end_is_refused():
    with pytest.raises(ParameterError, match="looks like JSON and is not"):
        parse_value("prior", "[" * 100_000, "weak")
