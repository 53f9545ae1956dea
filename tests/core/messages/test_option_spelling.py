"""Messages name options as their reader types them: in Python, or in a shell."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import wisecrowd
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.option_spelling import parameter, shell_spelling
from wisecrowd.core.parameter_checks import check_flag
from wisecrowd.core.registry import get_method
from wisecrowd.inference.priors import as_coin_prior, as_row_prior, as_worker_prior
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning.training.rows_of_features import as_targets

SOURCE = Path(wisecrowd.__file__).parent
CHOOSERS = {"for_reader", "option", "parameter"}
PYTHON = re.compile(
    r"\b[a-z_]+=(?=['\"\[({A-Za-z0-9.])"  # name=value
    r"|\b[A-Za-z_.]*[a-z]\([^)s]"  # call(argument
    r"|\bwisecrowd\.[a-z]"  # wisecrowd.module
    r"|\b(True or False|None,)"
)
SHELL = re.compile(r"(?<![\w-])--[a-z][a-z-]+|\bwisecrowd (audit|aggregate|train|compare)\b|-[mp] ")

# What only one kind of reader can get to see, or what is no option: part of the text, and why.
FOR_PYTHON = {
    "FixedConfusion(…": "a repr",
    "MeasuredAccuracy(…": "a repr",
    "--limit is": "parses the option itself",
    "typeof({0})": "SQL",
    "wisecrowd.read(path)": "a path given where labels are expected, in Python",
    "from_arrays(task, worker, label)": "an array, in Python",
    "looks like a long table with": "an array or a list of rows, in Python",
    "array differs in every row": "an array, in Python",
    "np.array(rows, dtype=object)": "a list of rows, in Python",
    "name them with task=": "io.tables.read_truth; commands have a remedy of their own",
    "is an option of wisecrowd.read and": "an argument of wisecrowd.aggregate",
    "call its collect()": "a lazy frame, in Python",
    "X is a Hugging Face data set": "an object, in Python",
    "(shape=": "a shape that is shown",
    "n_samples=1": "words that scikit-learn's checks look for",
    "inductive=False": "for whoever writes a method",
    "must be priors, such as": "prior objects, in Python",
    "allow_pickle=False": "how a file of features is written, which is done in Python",
    "?session=NAME": "part of an address",
    "load(module=)": "a network of one's own, which the command line cannot be given",
    "wisecrowd.methods() lists": "saving a method that is not registered, in Python",
    "order=[lowest": "an argument that the command line does not have",
    "give others by name, such as weight=": "arrays, in Python",
    "has no attribute": "an attribute of a module, in Python",
    "/next?worker=ann": "part of an address",
    "update with stepwise=": "updates of a fit, which are made in Python",
    "has no stepwise updates": "updates of a fit, which are made in Python",
    "does not go with a pack on an engine": "an engine, which is made in Python",
    "with with_kind(KIND):": "for whoever defines a kind, which is done in Python",
}
FOR_SHELL = {
    "openssl rand": "a command in any case",
    "--limit is": "parses the option itself",
    "spark-submit --archives": "an option of another command",
    "can be reached by others": "the service, which only a command starts",
    "--listen names": "the service, which only a command starts",
}


def messages(tree):
    """Yield the texts of a module that are no docstrings and are not chosen by the reader."""
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                skipped.add(id(first.value))
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in CHOOSERS:
                skipped.update(id(part) for part in ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in skipped:
            skipped.update(id(part) for part in node.values)
            parts = [v.value if isinstance(v, ast.Constant) else "…" for v in node.values]
            yield "".join(parts)
        elif isinstance(getattr(node, "value", None), str) and id(node) not in skipped:
            yield node.value


def found(folders, pattern, excused):
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] in folders and path.stem not in UPPER_PARTS:
            for text in messages(ast.parse(path.read_text(encoding="utf-8"))):
                sentence = len(text.split()) > 3
                if sentence and pattern.search(text) and not any(part in text for part in excused):
                    yield f"{path.name}: {text}"


# The report shows commands and Python lines beside each other, and the checks are not for users:
# neither the packages, nor what a kind adds to them.
UPPER_PARTS = {"report", "checks"}
LIBRARY = {path.name for path in SOURCE.iterdir()} - {"cli", "testing", "reporting"}


def test_the_library_spells_nothing_for_python_alone():
    assert list(found(LIBRARY, PYTHON, FOR_PYTHON)) == []


def test_the_library_spells_nothing_for_a_shell_alone():
    assert list(found(LIBRARY, SHELL, FOR_SHELL)) == []


def test_the_command_line_spells_nothing_for_python():
    excused = {"-p ", "in Python", "for wisecrowd.load", "a class such as yes=0.8"}
    assert list(found({"cli"}, PYTHON, excused)) == []


def test_the_excuses_are_needed():
    every = "\n".join(
        text
        for path in SOURCE.rglob("*.py")
        for text in messages(ast.parse(path.read_text(encoding="utf-8")))
    )
    assert [part for part in {**FOR_PYTHON, **FOR_SHELL} if part not in every] == []


def raised(attempt):
    with pytest.raises((DataError, ParameterError)) as caught:
        attempt()
    return str(caught.value)


LABELS = CrowdLabels.from_arrays(["a", "b"], ["u", "v"], [0, 1])


@pytest.mark.parametrize(
    ("attempt", "python", "shell"),
    [
        (lambda: as_targets(LABELS, 2), "fit(X, y, tasks=ids).", "--ids FILE."),
        (lambda: check_flag("soft", 3), "True or False", "true or false"),
        (lambda: as_coin_prior("strong"), "None, a pair (a, b)", "none or a pair [a,b]"),
        (lambda: as_row_prior("strong"), "'weak', None", "weak, none"),
        (lambda: as_worker_prior("strong"), "OneCoinPrior(2, 1)", "weak or a matrix"),
        (lambda: get_method("crowd-layer"), "wisecrowd.learning", "wisecrowd train"),
        (lambda: get_method("mace", "learning"), "wisecrowd.aggregation", "wisecrowd aggregate"),
    ],
)
def test_a_remedy_in_both_spellings(attempt, python, shell):
    text = raised(attempt)
    assert python in text
    assert shell not in text
    with shell_spelling():
        text = raised(attempt)
    assert shell in text
    assert python not in text


def test_parameters_with_spaces_are_quoted_for_a_shell():
    assert parameter("prior", None) == "prior=None"
    with shell_spelling():
        assert parameter("prior", None) == "-p prior=none"
        assert parameter("order", "a b") == "-p order='a b'"
