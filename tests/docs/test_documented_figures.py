"""The figures of learners in the documentation are those of fits with defaults."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from benchmarks.accuracy.learning import read_set
from benchmarks.accuracy.method_rows import digits_three_labels

from wisecrowd.core.registry import get_method

DOCS = Path(__file__).parents[2] / "docs"
ELSEWHERE = 0.02  # another processor rounds differently, and training multiplies that


def test_a_row_of_the_method_pages_is_a_fit_with_defaults():
    rows = json.loads((DOCS / "benchmark_rows.json").read_text(encoding="utf-8"))["learning"][
        "rows"
    ]
    documented = rows["two-stage"]["three labels"]
    X, crowd, X_new, truth_new = digits_three_labels(0)
    found = get_method("two-stage", "learning")().fit(X, crowd.labels).score(X_new, truth_new)
    assert found == pytest.approx(documented["accuracies"][0], abs=ELSEWHERE)
    assert documented["accuracy"] == pytest.approx(np.mean(documented["accuracies"]), abs=1e-3)


def documented_figures() -> dict[str, dict[str, tuple[float, float]]]:
    """Return method → data set → mean and deviation, from the table of docs/learning.md."""
    text = (DOCS / "learning.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("|") and "±" in line]
    header = next(line for line in text.splitlines() if "| labelme |" in line)
    sets = [cell.strip() for cell in header.strip("|").split("|")][1:]
    figures = {}
    for line in lines:
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        pairs = [tuple(map(float, re.findall(r"\.\d+", cell))) for cell in cells]
        figures[name] = dict(zip(sets, pairs, strict=True))
    return figures


def test_the_table_names_learners():
    figures = documented_figures()
    assert len(figures) >= 5
    for name, row in figures.items():
        get_method(name, "learning")
        assert set(row) == {"labelme", "music_genre"}
        assert all(0 < spread < 0.1 and 0.3 < mean < 1 for mean, spread in row.values())


@pytest.mark.data
@pytest.mark.parametrize(
    ("method", "data"), [("agg-net", "labelme"), ("maxmig", "labelme"), ("ccem", "music_genre")]
)
def test_the_table_is_what_defaults_give(method, data, data_directory):
    mean, spread = documented_figures()[method][data]
    X, labels, X_test, y_test = read_set(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = get_method(method, "learning")().fit(X, labels).score(X_test, y_test)
    assert found == pytest.approx(mean, abs=3 * spread)
