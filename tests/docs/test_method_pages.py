"""Every registered method has a page with all that a reader needs; its example stands alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from wisecrowd.core.registry import PACKAGES, method_names, methods

pytest.importorskip("torch")
ROWS = Path(__file__).parents[2] / "docs" / "benchmark_rows.json"


@pytest.fixture
def pages(site_module):
    return site_module("method_pages")


def test_every_method_has_a_page_with_an_example(pages):
    made = pages.pages()
    for kind in PACKAGES:
        for info in methods(kind):
            page = made[f"methods/{pages.page_of(kind, info.name)}"]
            assert page.startswith(f"# {info.name}\n"), info.name
            assert f"--method {info.name} " in page
            for heading in ("Parameters", "References", "Example"):
                assert f"\n## {heading}\n" in page, (info.name, heading)
            assert "Use it when" in page, info.name
            assert f">>> from wisecrowd.{kind} import {info.cls}" in page
            assert re.search(r"\n\\\[\n", page), f"{info.name} has no formula"
            assert ".. math" not in page
            assert ":math:" not in page
            assert ":class:" not in page


def test_examples_define_what_they_use(pages):
    for method in pages.all_methods():
        assert pages.undefined_names(pages.example(method)) == set(), method.name


def test_undefined_names(pages):
    assert pages.undefined_names(">>> import a.b\n>>> x = a.b(y)\n>>> print(x)\n1") == {"y"}
    assert pages.undefined_names(">>> def f(t):\n...     return t\n>>> f(1)") == set()


def test_every_parameter_is_on_the_page(pages):
    """Named in the docstring, or with the base class to which it points."""
    inherited = {
        name
        for base in pages.BASES
        for entry in pages.parse(pages._load(base).__doc__ or "").entries("Parameters")
        for name in entry.names
    } | {name for base in pages.BASES for name in pages.defaults(pages._load(base))}
    for method in pages.all_methods():
        named = {n for e in method.docstring.entries("Parameters") for n in e.names}
        missing = set(pages.defaults(method.cls)) - named - inherited
        assert not missing, (method.name, missing)


def test_all_pages_are_in_the_navigation(pages):
    def files(entries):
        for entry in entries:
            if isinstance(entry, str):
                yield entry
            else:
                for value in entry.values():
                    yield from files(value if isinstance(value, list) else [value])

    listed = list(files(pages.navigation()))
    assert sorted(listed) == sorted(pages.pages())
    assert len(listed) == sum(len(method_names(kind, None)) for kind in PACKAGES) + 2


def test_measurements_are_of_methods_that_exist():
    measured = json.loads(ROWS.read_text(encoding="utf-8"))
    for kind in PACKAGES:
        rows, crowds = measured[kind]["rows"], measured[kind]["crowds"]
        assert rows.keys() <= set(method_names(kind))
        for name, row in rows.items():
            assert list(row) == list(crowds), name
            for scores in filter(None, row.values()):
                assert 0 <= scores["accuracy"] <= 1
                assert scores["log_loss"] >= 0


@pytest.mark.parametrize("type", ["ordered", "numbers", "pairs"])
def test_measurements_of_other_types_are_of_methods_that_exist(type):
    measured = json.loads(ROWS.read_text(encoding="utf-8"))[type]
    assert measured["rows"].keys() == set(method_names(type=type))
    for name, row in measured["rows"].items():
        assert list(row) == list(measured["crowds"]), name
        assert any(scores is not None for scores in row.values()), name


def test_the_table_of_methods_has_them_all(pages):
    index = pages.index_page()
    for kind in PACKAGES:
        for name in method_names(kind, None):
            assert f"[{name}]({name}.md)" in index


def test_links_between_methods(pages):
    assert pages.link("wisecrowd.kinds.classes.methods.dawid_skene.DawidSkene") == "dawid-skene.md"
    assert pages.link("NeuralClassifier") == "shared-parameters.md#neuralclassifier"
    assert pages.link("wisecrowd.inference.priors.OneCoin") is None  # a prior, not the method
    assert pages.link("max_iter") is None
