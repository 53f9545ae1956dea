from __future__ import annotations

import subprocess
import sys

import pytest

from wisecrowd.aggregation import DawidSkene
from wisecrowd.audit import Finding, Findings


def test_labels(labels, hostile):
    shown = labels._repr_html_()
    assert "16 workers" in shown
    assert "and 1,592 more labels" in shown
    text = hostile._repr_html_()
    assert "<script" not in text
    assert "<img" not in text
    assert "x" * 301 not in text
    text.encode("utf-8")


def test_fits(labels, hostile):
    assert "not fitted" in DawidSkene()._repr_html_()
    shown = DawidSkene().fit(labels)._repr_html_()
    assert "200 tasks, 16 workers, 3 classes" in shown
    assert "converged" in shown
    text = DawidSkene().fit(hostile)._repr_html_()
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_findings():
    assert Findings()._repr_html_() == "<p>nothing found</p>"
    found = Findings([Finding("spammers", "high", 0.5, ("<b>",), "<b> is bad", "Prune.")])
    assert "&lt;b&gt; is bad" in found._repr_html_()
    assert "<b>" not in found._repr_html_()


@pytest.mark.parametrize(
    "name", ["wisecrowd", "wisecrowd.kinds.classes.container", "wisecrowd.core.aggregator"]
)
def test_the_core_does_not_load_reporting(name):
    code = (
        f"import sys, {name}; print([m for m in sys.modules if m.startswith('wisecrowd.report')"
        " or m in ('jinja2', 'matplotlib')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
