from __future__ import annotations

import warnings

import pytest

from wisecrowd.cli.terminal import Notes, harmless, text_table
from wisecrowd.core.exceptions import WisecrowdWarning


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, Ünïcode, 漢字 👩‍🔬", "plain, Ünïcode, 漢字 👩‍🔬"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("\u061c\u2066\u2069\u200f", r"\u061c\u2066\u2069\u200f"),
        ("soft\xadhyphen\u2060\ufff9", r"soft\xadhyphen\u2060\ufff9"),
        ("tag\U000e0041", r"tag\U000e0041"),
    ],
)
def test_steering_characters_are_shown_as_codes(text, shown):
    assert harmless(text) == shown


def test_notes_go_to_standard_error_once(capsys):
    notes = Notes()
    notes("first\x1b")
    notes("second")
    notes("first\x1b")
    assert capsys.readouterr() == ("", "first\\x1b\nsecond\n")
    assert notes.said == ["first\x1b", "second"]


def test_quiet_notes_are_kept_and_not_shown(capsys):
    notes = Notes(quiet=True)
    notes("first")
    assert capsys.readouterr() == ("", "")
    assert notes.said == ["first"]


def test_warnings_of_the_library_become_notes_and_others_stay(capsys):
    with warnings.catch_warnings(record=True) as others, Notes() as notes:
        warnings.simplefilter("always", UserWarning)
        warnings.warn("seen", WisecrowdWarning, stacklevel=1)
        notes("seen")  # the same sentence in CrowdLabels.notes
        warnings.warn("slow", WisecrowdWarning, stacklevel=1)
        warnings.warn("not ours", UserWarning, stacklevel=1)
        notes.flush(about="glad")
        assert capsys.readouterr().err == "seen\nglad: slow\n"
    assert [str(other.message) for other in others] == ["not ours"]
    assert capsys.readouterr().err == ""
    with pytest.raises(WisecrowdWarning):  # the filters are back
        warnings.warn("again", WisecrowdWarning, stacklevel=1)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_pending_warnings_are_shown_before_an_error(capsys, error):
    def interrupted_work() -> None:
        with Notes():
            warnings.warn("pending", WisecrowdWarning, stacklevel=1)
            raise error

    with pytest.raises(error):
        interrupted_work()
    assert capsys.readouterr().err == "pending\n"


def test_warnings_come_before_the_next_note(capsys):
    with Notes() as notes:
        warnings.warn("first", WisecrowdWarning, stacklevel=1)
        notes("second")
        assert capsys.readouterr().err == "first\nsecond\n"


def test_table_aligns_numbers_right_and_shows_gaps():
    assert text_table(["name", "x"], [["a", 1.0], ["long name", None], ["b", 12]]).split("\n") == [
        "name            x",
        "a          1.0000",
        "long name       -",
        "b              12",
    ]


def test_table_without_rows_is_its_header():
    assert text_table(["name", "x"], []) == "name  x"


def test_long_last_cells_fold_on_a_terminal_only():
    row = ["kos", "handles two classes and there are four of them"]
    assert text_table(["not run", "why"], [row]).count("\n") == 1
    folded = text_table(["not run", "why"], [row], width=34).split("\n")
    assert folded[1:] == [
        "kos      handles two classes and",
        "         there are four of them",
    ]


def test_table_neutralises_cells():
    assert "\x1b" not in text_table(["name"], [["\x1b[2J"]])
