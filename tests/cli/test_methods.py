from __future__ import annotations

import json

import wisecrowd as wc


def test_every_method_with_what_it_is_for_and_its_paper(cli):
    code, out, err = cli("methods")
    assert (code, err) == (0, "")
    for method in wc.methods():
        assert f"\n    {method.use}\n" in out
        assert f"\n    {method.reference}\n" in out
        assert method.name in out.splitlines()


def test_json(cli):
    found = json.loads(cli("methods", "--json").out)["methods"]
    assert [row["name"] for row in found] == [method.name for method in wc.methods()]
    assert set(found[0]) == {"name", "cls", "summary", "use", "reference"}


def test_folded_to_the_terminal(cli, monkeypatch):
    monkeypatch.setattr("wisecrowd.cli.terminal.terminal_width", lambda: 60)
    lines = cli("methods").out.splitlines()
    assert max(map(len, lines)) <= 60
