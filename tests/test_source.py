"""Nothing in the package can be made to run what a file holds."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import wisecrowd

PACKAGE = Path(wisecrowd.__file__).parent
# Modules whose purpose is to turn bytes into running objects.
UNSAFE_MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal",
                  "shelve", "jsonpickle", "runpy", "code"}  # fmt: skip
UNSAFE_NAMES = {"eval", "exec", "compile", "__import__"}
UNSAFE_METHODS = {"extractall", "extract", "unpack_archive", "read_pickle", "to_pickle"}
UNSAFE_CALLS = {("os", "system"), ("os", "popen"), ("yaml", "unsafe_load")}
# load is safe of json and of our own models, never of these.
UNSAFE_LOADS = {"np", "numpy", "torch", "yaml", "xp", "joblib", "pd"}
# The shipped checks copy an estimator through memory, as scikit-learn does; no file is involved.
ALLOWED = {("testing/contract.py", "import pickle")}


def unsafe(tree: ast.AST) -> list[str]:
    """Return what in a module could run foreign code, with its line."""
    found = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [f"import {alias.name}" for alias in node.names
                     if alias.name.split(".")[0] in UNSAFE_MODULES]  # fmt: skip
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module.split(".")[0] in UNSAFE_MODULES:
                names = [f"from {node.module} import"]
        elif isinstance(node, ast.Name) and node.id in UNSAFE_NAMES:
            names = [node.id]
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if node.attr in UNSAFE_METHODS or (node.attr == "load" and owner in UNSAFE_LOADS):
                names = [f"{owner}.{node.attr}"]
            if (owner, node.attr) in UNSAFE_CALLS:
                names = [f"{owner}.{node.attr}"]
            if owner == "builtins" and node.attr in UNSAFE_NAMES:
                names = [f"builtins.{node.attr}"]
        elif isinstance(node, ast.Call):
            names = [f"{key.arg} is lax" for key in node.keywords if _is_lax(key, node.func)]
        found += [f"line {node.lineno}: {name}" for name in names]
    return found


def _is_lax(key: ast.keyword, function: ast.expr) -> bool:
    """Tell whether an argument asks for pickles, or for a shell."""
    value = key.value.value if isinstance(key.value, ast.Constant) else None
    if key.arg == "shell":
        return ast.unparse(function).startswith("subprocess.") and value is not False
    if key.arg == "allow_pickle":
        return value is not False
    return key.arg == "weights_only" and value is not True


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_nothing_unsafe(path):
    found = unsafe(ast.parse(path.read_text(encoding="utf-8")))
    where = path.relative_to(PACKAGE).as_posix()
    assert [one for one in found if (where, one.split(": ")[1]) not in ALLOWED] == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "import os, dill.settings",
        "from pickle import loads",
        "from joblib import load as read",
        "eval('1')",
        "f = exec",
        "compile(text, '', 'exec')",
        "__import__('os')",
        "import builtins; builtins.eval",
        "np.load(path)",
        "torch.load(path)",
        "numpy.load(path, allow_pickle=False)",
        "np.lib.format.read_array(file, allow_pickle=True)",
        "np.save(file, x, allow_pickle=flag)",
        "archive.extractall()",
        "tarfile.open(x).extract(name)",
        "shutil.unpack_archive(x)",
        "frame.read_pickle",
        "load(x, weights_only=False)",
        "subprocess.run(x, shell=True)",
        "os.system(x)",
        "yaml.load(x)",
    ],
)
def test_what_is_unsafe_is_found(text):
    assert unsafe(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    ["json.load(f)", "network.eval()", "re.compile(x)", "wc.load(folder)", "load(f)",
     "case(shell=1)", "np.save(f, x, allow_pickle=False)", "'import pickle'"],
)  # fmt: skip
def test_what_is_safe_is_not(text):
    assert unsafe(ast.parse(text)) == []
