from __future__ import annotations

import unicodedata
import warnings

import numpy as np
import pytest

from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.ids.lookalike_ids import _BLOCK, equal_numbers, lookalike_pairs, skeletons
from wisecrowd.core.messages.option_spelling import shell_spelling
from wisecrowd.io.tables import read
from wisecrowd.kinds.classes.container import CrowdLabels


def ids(*texts):
    return np.array(texts, dtype=object)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("cat", "cat ", "dog"), [("cat", "cat ")]),
        (("\tcat", "cat"), [("\tcat", "cat")]),
        (("CAT", "Cat", "dog"), [("CAT", "Cat")]),
        (("cafe\u0301", "caf\u00e9"), [("cafe\u0301", "caf\u00e9")]),
        (("a", "b", "c d", "cd"), []),
        (("yes", "No"), []),
        (("cat", "cat\u200b", "dog"), [("cat", "cat\u200b")]),
        (("\ufeffcat", "cat"), [("\ufeffcat", "cat")]),
        (("cat", "\u0441at"), [("cat", "\u0441at")]),
        (("CAT", "\u0421\u0410\u0422"), [("CAT", "\u0421\u0410\u0422")]),
        (("cat", "\u0421\u0410\u0422"), [("cat", "\u0421\u0410\u0422")]),
        (("NO", "\u039d\u039f"), [("NO", "\u039d\u039f")]),
        (("New York", "New\xa0York"), [("New York", "New\xa0York")]),
        (("\u2764", "\u2764\ufe0f"), [("\u2764", "\u2764\ufe0f")]),
        (("Кот", "кот"), [("Кот", "кот")]),
        (("only ",), []),
    ],
)
def test_pairs_that_look_the_same(texts, expected):
    assert lookalike_pairs(ids(*texts), by_case=True) == expected


@pytest.mark.parametrize(
    "texts",
    [
        ("кот", "пёс", "корова", "рот", "сорт", "хор", "вар", "бар", "нос"),
        ("Ва", "ва ва", "На", "на на", "һа", "Та", "та та", "Ра", "Са", "Ха", "Уа"),
        ("γάτα", "σκύλος", "αγελάδα", "ναι", "όχι", "υιός", "Νίκη", "Υδρα"),
        ("猫", "犬", "牛"),
        ("고양이", "개"),
        ("قطة", "كلب"),
        ("cat", "собака", "γάτα"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468"),
        ("\U0001f3f4\U000e0067\U000e007f", "\U0001f3f4\U000e0073\U000e007f"),
        ("straße", "strasse"),
        ("x²", "x2"),
        ("à", "a", "á"),
    ],
    ids=lambda texts: texts[0],
)
def test_words_of_any_alphabet_are_no_lookalikes(texts):
    assert lookalike_pairs(ids(*texts), by_case=True) == []


def test_no_two_letters_of_an_alphabet_look_the_same():
    for first, last in ((0x370, 0x400), (0x400, 0x530)):
        letters = [chr(i) for i in range(first, last) if unicodedata.category(chr(i))[0] == "L"]
        looks = [
            look for letter, look in zip(letters, skeletons(letters), strict=True) if look != letter
        ]
        assert len(set(looks)) == len(looks) > 15


def test_case_counts_only_where_it_is_asked_for():
    assert lookalike_pairs(ids("aB", "ab"), by_case=False) == []
    assert lookalike_pairs(ids("ab", "ab "), by_case=False) == [("ab", "ab ")]


def test_lookalikes_in_different_blocks_are_found():
    many = ids("t ", *(f"t{i}" for i in range(_BLOCK)), "t")
    assert lookalike_pairs(many, by_case=False) == [("t ", "t")]


def test_numbers_have_no_lookalikes():
    assert lookalike_pairs(np.arange(5), by_case=True) == []


def test_the_warning_names_pairs_and_the_remedy_and_is_kept_as_a_note():
    with pytest.warns(WisecrowdWarning, match=r"'cat' and 'cat ' count as different classes.*same"):
        labels = CrowdLabels.from_arrays(["t", "u"], ["ann", "bob"], ["cat", "cat "])
    assert "classes=[...]" in labels.notes[0]
    with shell_spelling(), pytest.warns(WisecrowdWarning, match="--classes A,B,C"):
        CrowdLabels.from_arrays(["t", "u"], ["ann", "bob"], ["cat", "Cat"])


def test_task_ids_may_differ_by_case():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CrowdLabels.from_arrays(["aB", "ab"], ["ann", "bob"], ["x", "y"])
    with pytest.warns(WisecrowdWarning, match="different workers"):
        CrowdLabels.from_arrays(["t", "t"], ["ann", "Ann"], ["x", "y"])


@pytest.mark.parametrize(
    ("classes", "pairs"),
    [
        (["0", "1", "1.0"], [("1", "1.0")]),
        (["0", "0.0", "1", "1.", "+1"], [("0", "0.0"), ("1", "1."), ("1", "+1")]),
        (["1", "2", "10"], []),
        (["007", "7", "00", "0"], []),
        (["v1", "v1.0", "1-2", "1e3", "1000"], []),
        (["12345678901234567890", "12345678901234567891"], []),
        (["", ".", "x"], []),
    ],
)
def test_classes_that_are_one_number(classes, pairs):
    assert equal_numbers(np.array(classes, dtype=object)) == pairs


def test_a_number_written_in_two_ways_is_reported(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("task,worker,label\n1,ann,1\n1,bob,1.0\n1.0,ann,0\n")
    with pytest.warns(WisecrowdWarning, match=r"'1' and '1\.0' count as different classes and are"):
        labels = read(path)
    assert labels.classes.tolist() == ["0", "1", "1.0"]
