from __future__ import annotations

from wisecrowd.reporting.display import percent, shorten, shown


def test_text_can_be_written_as_utf_8():
    assert shown("a\ud800b\x1b[2J").encode() == rb"a\ud800b\x1b[2J"
    assert shown("שלום 🙂\tx\n") == "שלום 🙂\tx\n"


def test_long_text_is_cut():
    assert len(shorten("x" * 10_000)) == 60
    assert shorten("x" * 60) == "x" * 60
    assert percent(1.0, 0) == "100 %"
