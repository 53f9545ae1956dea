"""LaTeX in a page becomes MathML."""

from __future__ import annotations

import re

import pytest


@pytest.fixture
def maths(site_module):
    pytest.importorskip("latex2mathml", reason="formulas are drawn by the extra `docs`")
    return site_module("maths")


def words(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html)


def test_inline_and_display(maths):
    page = '<p>for <span class="arithmatex">\\(j &lt; k\\)</span></p>'
    made = maths.render_maths(page)
    assert made.startswith("<p>for <math")
    assert 'display="inline"' in made
    assert "arithmatex" not in made
    block = '<div class="arithmatex">\\[\na = 1, \\qquad b = \\arg\\max_k c\\\\ d\n\\]</div>'
    made = maths.render_maths(block)
    assert made.count("<math") == 3  # what stands apart has a line of its own
    assert "arg" in words(made)
    assert "\\" not in words(made)


def test_lines_of_an_environment_stay_together(maths):
    block = r'<div class="arithmatex">\[f = \begin{cases} 1 & x \\ 0 & y \end{cases}\]</div>'
    assert maths.render_maths(block).count("<math") == 1


def test_words_stay_words(maths):
    made = maths.render_maths('<span class="arithmatex">\\(\\mathrm{softmax}(x)\\)</span>')
    assert "softmax" in words(made)
    assert ">softmax<" in made


def test_unknown_commands_are_refused(maths):
    with pytest.raises(ValueError, match="cannot be drawn"):
        maths.render_maths('<span class="arithmatex">\\(\\nosuchthing x\\)</span>')


def test_what_is_no_formula_is_left_alone(maths):
    assert maths.render_maths("<p>\\(x\\)</p>") == "<p>\\(x\\)</p>"
