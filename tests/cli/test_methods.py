from __future__ import annotations

import json

import pytest

import wisecrowd as wc


def listed(out):
    """Return the lines of methods, without the headings of types."""
    return [line for line in out.splitlines() if line and not line.startswith("[")]


def test_each_type_has_a_heading_and_can_be_asked_for(cli):
    headings = [line for line in cli("methods").out.splitlines() if line.startswith("[")]
    assert headings == list(dict.fromkeys(f"[{method.type}]" for method in wc.methods()))
    out = cli("methods", "--type", "numbers").out
    assert [line.split()[0] for line in out.splitlines()] == [
        method.name for method in wc.methods(type="numbers")
    ]
    assert "type is 'sounds'" in cli("methods", "--type", "sounds").err


@pytest.mark.parametrize("kind", ["aggregation", "learning"])
def test_one_line_each(cli, kind):
    code, out, err = cli("methods", *(["--learning"] if kind == "learning" else []))
    assert (code, err) == (0, "")
    lines = listed(out)
    assert len(lines) == len(wc.methods(kind))
    for line, method in zip(lines, wc.methods(kind), strict=True):
        assert line.split("  ")[0] == method.name
        assert line.endswith(f"  {method.summary}")


def test_long_says_what_each_is_for_and_its_paper(cli):
    code, out, err = cli("methods", "--long")
    assert (code, err) == (0, "")
    for method in wc.methods():
        assert f"\n    {method.use}\n" in out
        assert f"\n    {method.reference}\n" in out
        assert method.name in out.splitlines()


@pytest.mark.parametrize("options", [[], ["--long"]])
def test_json_is_complete(cli, options):
    found = json.loads(cli("methods", "--json", *options).out)["methods"]
    assert [row["name"] for row in found] == [method.name for method in wc.methods()]
    assert set(found[0]) == {"name", "cls", "summary", "use", "reference", "type"}


def test_lines_are_cut_to_the_terminal_and_paragraphs_folded(cli, monkeypatch):
    for module in ("terminal", "run.about"):
        monkeypatch.setattr(f"wisecrowd.cli.{module}.terminal_width", lambda: 60)
    lines = listed(cli("methods").out)
    assert len(lines) == len(wc.methods())
    assert max(map(len, lines)) <= 60
    assert any(line.endswith("…") for line in lines)
    assert max(map(len, cli("methods", "--long").out.splitlines())) <= 60
