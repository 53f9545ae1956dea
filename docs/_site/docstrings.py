"""Numpydoc docstrings to Markdown; formulas stay LaTeX, in the brackets that arithmatex reads."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field

Link = Callable[[str], str | None]

_ROLE = re.compile(r":(?P<role>[a-z]+):`(?P<target>[^`]+)`|``(?P<code>[^`]+)``")
_MATHS = re.compile(r"^\.\. math::[ \t]*(.*\n(?:(?:[ \t]+.*)?\n)*)", re.MULTILINE)
_HEADING = re.compile(r"^([A-Z][a-z]+)\n-+\n", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """One line of Parameters or Attributes: its names, what it may be, and what it does."""

    names: tuple[str, ...]
    kind: str
    text: str


@dataclass(frozen=True)
class Docstring:
    """A docstring taken apart; texts are as they were written.

    Attributes
    ----------
    summary, description : the first line, and all before the first section
    sections : by heading
    """

    summary: str
    description: str
    sections: dict[str, str] = field(default_factory=dict)

    def entries(self, heading: str) -> list[Entry]:
        """Return the entries of a section such as Parameters."""
        found: list[Entry] = []
        for block in re.split(r"\n(?=\S)", self.sections.get(heading, "").strip()):
            head, _, text = block.partition("\n")
            if head:
                names, _, kind = head.partition(" : ")
                found.append(Entry(tuple(names.split(", ")), kind, textwrap.dedent(text).strip()))
        return found


def parse(text: str) -> Docstring:
    """Take a docstring apart."""
    before, *rest = _HEADING.split(text)
    sections = {name: body.strip("\n") for name, body in zip(rest[::2], rest[1::2], strict=True)}
    summary, _, description = before.strip().partition("\n")
    return Docstring(summary.strip(), description.strip(), sections)


def to_markdown(text: str, link: Link) -> str:
    """Return text with its maths and roles in Markdown.

    Parameters
    ----------
    text : str
    link : callable
        From a dotted name, or a class's name alone, to the address of its page, or None.
    """
    parts = _MATHS.split(f"{text}\n")
    prose = [_inline(part, link) for part in parts[::2]]
    maths = [f"\n\\[\n{textwrap.dedent(part).strip()}\n\\]\n\n" for part in parts[1::2]]
    woven = [prose[0]]
    for formula, after in zip(maths, prose[1:], strict=True):
        woven += [formula, after.lstrip("\n")]
    return "".join(woven).strip()


def _inline(text: str, link: Link) -> str:
    pieces, place = [], 0
    for match in _ROLE.finditer(text):
        pieces += [_plain(text[place : match.start()]), _role(match, link)]
        place = match.end()
    return "".join([*pieces, _plain(text[place:])])


def _plain(text: str) -> str:
    return text.replace("<", "&lt;")


def _role(match: re.Match[str], link: Link) -> str:
    """Return a role or a literal, on one line, as a link where its page is known."""
    if match["role"] == "math":
        return f"\\({' '.join(match['target'].split())}\\)"
    written = match["code"] or match["target"]
    target = " ".join(written.split()).removeprefix("~")
    shown = target.rpartition(".")[2] if written.startswith("~") else target
    address = link(target)
    return f"[`{shown}`]({address})" if address else f"`{shown}`"
