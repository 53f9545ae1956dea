from __future__ import annotations

import json

import wisecrowd as wc


def test_versions(cli):
    assert cli("versions") == (0, f"{wc.show_versions()!r}\n", "")


def test_json(cli):
    assert json.loads(cli("versions", "--json").out) == dict(wc.show_versions())
