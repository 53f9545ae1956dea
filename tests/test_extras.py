"""The extras of the package bring what the documentation uses."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
MODULES = {"sklearn": "scikit-learn"}


def names(requirements):
    """Return the libraries of a list of requirements, those of extras inside it too."""
    found = set()
    for text in requirements:
        name, inner = re.match(r"([\w-]+)(?:\[([\w,-]+)\])?", text).groups()
        for extra in (inner or "").split(",") if name == "wisecrowd" else []:
            found |= names(EXTRAS[extra])
        if name != "wisecrowd":
            found.add(name)
    return found


def test_everything_that_plots_and_frames_need_comes_with_all():
    assert {"matplotlib", "pandas", "torch", "safetensors", "jinja2"} <= names(EXTRAS["all"])


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/learning.md"])
def test_what_a_page_imports_comes_with_all(page):
    known = names(EXTRAS["all"]) | names(PROJECT["dependencies"]) | {"wisecrowd"}
    lines = re.findall(r"^>>> ((?:import|from) .*)$", (ROOT / page).read_text(), re.MULTILINE)
    for line in lines:
        node = ast.parse(line.partition("#")[0]).body[0]
        module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        root = module.partition(".")[0]
        assert root in sys.stdlib_module_names or MODULES.get(root, root) in known, line


def test_every_library_of_an_extra_is_used():
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    for name in names(EXTRAS["all"]):
        module = next((m for m, library in MODULES.items() if library == name), name)
        assert re.search(rf"\b{module}\b", text), name
    assert "cluster" not in EXTRAS
