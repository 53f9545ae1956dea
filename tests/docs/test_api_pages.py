"""Every public name has a section with its signature; examples stand alone."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import wisecrowd

pytest.importorskip("torch")
SITE = Path(__file__).parents[2] / "docs" / "_site"


@pytest.fixture(scope="module")
def api():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SITE))
        yield importlib.import_module("api_pages")


@pytest.fixture(scope="module")
def pages(api):
    return api.pages()


@pytest.fixture
def signature(site_module):
    return site_module("signatures").signature


def test_every_public_name_has_a_section_with_types(api, pages):
    for module in api.PAGES:
        page = pages[api.path_of(module)]
        assert api.public_names(module), module
        for name in api.public_names(module):
            section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
            assert "```python\n" in section or "Another name of" in section, name
            assert f"[`{name}`]({api.path_of(module).removeprefix('api/')}#" in pages[api.INDEX]


def test_no_public_module_is_forgotten(api):
    methods = {"wisecrowd.aggregation", "wisecrowd.learning"}
    loaded = {name: getattr(wisecrowd, name) for name in dir(wisecrowd) if name[0] != "_"}
    public = {f"wisecrowd.{name}" for name, one in loaded.items() if inspect.ismodule(one)}
    assert public - methods == set(api.PAGES) - {"wisecrowd"}
    listed = {name for name, one in loaded.items() if not inspect.ismodule(one)}
    assert set(api.public_names("wisecrowd")) == listed


def test_nothing_of_restructured_text_is_left(pages):
    for path, page in pages.items():
        assert not re.search(r":(?:math|class|func|mod):`|^\.\. math", page, re.M), path


def test_what_all_methods_share_is_described(api, pages):
    page = pages[api.METHODS]
    for name in ("Aggregator.fit", "Aggregator.predict", "CrowdClassifier.fit"):
        assert f"\n### {name}\n" in page
    assert "DawidSkene(\n    *,\n    prior: Any = 'weak',\n" in page


def test_examples_bring_their_imports(api, site_module, pages):
    undefined = site_module("method_pages").undefined_names
    for path, page in pages.items():
        for code in re.findall(r"(?s)```python\n(>>> .*?)\n```", page):
            assert undefined(code) == set(), (path, code)


def test_signatures(signature):
    def long(first: int, second: str = "x", *rest: float, third: bool, fourth: object = print,
             **more: int) -> list[str]: ...  # fmt: skip

    assert signature(long) == (
        "long(\n    first: int,\n    second: str = 'x',\n    *rest: float,\n    third: bool,\n"
        "    fourth: object = print,\n    **more: int,\n) -> list[str]"
    )
    assert signature(long, skip_first=True).startswith("long(\n    second")
    assert signature(lambda x, *, y=1: x) == "<lambda>(x, *, y=1)"
