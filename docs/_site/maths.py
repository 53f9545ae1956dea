"""LaTeX in a page to MathML, which browsers draw by themselves: no script and no network."""

from __future__ import annotations

import re
from html import unescape

from latex2mathml.converter import convert

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?:\(|\[)(?P<latex>.*?)\\(?:\)|\])</(?P=tag)>',
    re.DOTALL,
)
# What the converter does not know, spells letter by letter, or sets too closely.
_SPELLED = (
    (r"\\arg(?![a-z])", r"\\operatorname{arg}"),
    (r"\\mathrm\{(\w{2,})\}", r"\\text{\1}"),
    (r"\\sim(?![a-z])", r"\\;\\sim\\;"),
    (r"\\(log|exp)(?![a-z_(])", r"\\\1\\,"),
)


def render_maths(html: str) -> str:
    """Return a page with every formula that arithmatex marked drawn as MathML."""
    return _FORMULA.sub(_draw, html)


def _draw(match: re.Match[str]) -> str:
    latex = " ".join(unescape(match["latex"]).split())
    for pattern, replacement in _SPELLED:
        latex = re.sub(pattern, replacement, latex)
    if match["tag"] == "span":
        return _mathml(latex, "inline")
    # Browsers do not break long formulas: what stands apart gets a line of its own. The lines of an
    # environment such as cases stay together.
    between = r"\\qquad" if r"\begin" in latex else r"\\\\|\\qquad"
    lines = re.split(between, latex)
    drawn = "".join(_mathml(line.strip(), "block") for line in lines if line.strip())
    return f'<div class="formula">{drawn}</div>'


def _mathml(latex: str, display: str) -> str:
    mathml = convert(latex, display=display)
    if re.search(r">\\[a-zA-Z]", mathml):
        raise ValueError(f"A formula has a command that cannot be drawn: {latex}")
    return mathml
