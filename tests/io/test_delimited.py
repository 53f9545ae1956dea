from __future__ import annotations

import gzip
import io
import os
import sys
import threading
import time

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io import delimited
from wisecrowd.io.tables import read, read_frame

ROWS = "task,worker,label\nt1,ann,cat\nt1,bob,dog\n"


def table_of(labels):
    table = labels.to_dict()
    return list(zip(*(table[role].tolist() for role in ("task", "worker", "label")), strict=True))


EXPECTED = [("t1", "ann", "cat"), ("t1", "bob", "dog")]


@pytest.fixture(params=["file", "gzip", "stdin", "pipe"])
def given(request, tmp_path, monkeypatch):
    """Return a function that makes bytes readable in one of four ways."""

    def make(content, name="answers.csv"):
        content = content if isinstance(content, bytes) else content.encode()
        path = tmp_path / name
        if request.param == "stdin":
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
            return "-"
        if request.param == "pipe":
            os.mkfifo(path)
            threading.Thread(target=path.write_bytes, args=(content,), daemon=True).start()
        elif request.param == "gzip":
            path = tmp_path / (name + ".gz")
            path.write_bytes(gzip.compress(content))
        else:
            path.write_bytes(content)
        return path

    return make


@pytest.mark.parametrize(
    "content",
    [
        ROWS,
        ROWS.rstrip("\n"),
        ROWS.replace("\n", "\r\n"),
        b"\xef\xbb\xbf" + ROWS.encode(),
        "\n\n" + ROWS,
        ROWS.replace("\n", "\r"),
        "\r\r" + ROWS.replace("\n", "\r"),
        "\r" + ROWS.replace("\n", "\r").rstrip("\r"),
        "\r\n\r\n" + ROWS.replace("\n", "\r\n"),
        "\n\r" + ROWS,
        ROWS.replace("\n", "\n\n"),
        '"task","worker","label"\n"t1","ann","cat"\n"t1","bob","dog"\n',
        "x,label,worker,task\n1,cat,ann,t1\n2,dog,bob,t1\n",
        'x,label,worker,task\n"1,5",cat,ann,t1\n"a ""b""\nc",dog,bob,t1\n',
        'x,"y\nz",label,worker,task\n1,1,cat,ann,t1\n2,1,dog,bob,t1\n',
        "x,,x,task,worker,label\n1,2,3,t1,ann,cat\n1,2,3,t1,bob,dog\n",
        " task , worker , label \nt1,ann,cat\nt1,bob,dog\n",
    ],
)
def test_the_many_looks_of_one_table(given, content):
    assert table_of(read(given(content))) == EXPECTED


@pytest.mark.parametrize(("separator", "said"), [(";", "semicolon"), ("\t", "tab"), ("|", "bar")])
def test_another_separator_is_detected_and_said(given, separator, said):
    labels = read(given(ROWS.replace(",", separator)))
    assert table_of(labels) == EXPECTED
    assert labels.notes[0].endswith(f"is separated by {said}s")


def test_the_separator_of_a_header_that_ends_with_a_carriage_return(given):
    labels = read(given("task;worker;label\rt1;ann;a,b\rt1;bob;c,d\r"))
    assert labels.to_dict()["label"].tolist() == ["a,b", "c,d"]


def test_tabs_are_no_surprise_in_a_tsv(tmp_path):
    (tmp_path / "a.tsv").write_text(ROWS.replace(",", "\t"))
    assert read(tmp_path / "a.tsv").notes == ()
    (tmp_path / "b.tsv").write_text(ROWS)
    assert read(tmp_path / "b.tsv").notes == (f"{tmp_path / 'b.tsv'} is separated by commas",)


@pytest.mark.parametrize(
    "label", ["nan", "NA", "None", "null", "N/A", "007", "1.0", " x", "日本", "-1"]
)
def test_fields_stay_text(given, label):
    labels = read(given(f"task,worker,label\n{label},{label},{label}\n"))
    assert table_of(labels) == [(label, label, label)]


def test_values_with_newlines_separators_and_quotes(given):
    labels = read(given('task,worker,label\n"a\nb","c,d","say ""hi"""\n'))
    assert table_of(labels) == [("a\nb", "c,d", 'say "hi"')]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"is empty; give a file with a header"),
        ("\n \n", r"is empty"),
        (b"\xef\xbb\xbf", r"is empty"),
        ("task,worker,label\n", r"has a header but no rows; give one row per annotation"),
        ("task,worker,label", r"has a header but no rows"),
        (
            "task\nt1\n",
            r"has one column only, 'task'; columns for task, worker and label are needed",
        ),
        (
            "task,worker,label\nt1,ann,cat\nt1,bob\n",
            r"row 2 has 2 fields where the header has 3 \('t1",
        ),
        (
            "task,worker,label\nt1,ann,cat,x\n",
            r"row 1 has 4 fields .* quote values that contain the sep",
        ),
        ("task,wroker,label\nt1,ann,cat\n", r"No column looks like the worker.*is it 'wroker'\?"),
        (
            "task,worker,label\nt1,,cat\nt1,bob,\n",
            r"worker column is empty in row 1 of .*; fill in",
        ),
        (
            "task,worker,label\nt1,ann,cat\nt1,bob,\n",
            r"label column is empty in row 2 of .*abstain=''",
        ),
        ('"task,worker,label\n', r"header|one column only"),
    ],
)
def test_unusable_files_are_refused(given, content, message):
    path = given(content)
    with pytest.raises(DataError, match=message) as error:
        read(path)
    name = "standard input" if path == "-" else str(path)
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def test_a_misspelt_option_gets_the_near_column(tmp_path):
    (tmp_path / "a.csv").write_text(ROWS)
    with pytest.raises(
        DataError, match=r"a.csv: There is no column 'lable' .* did you mean 'label'\?"
    ):
        read(tmp_path / "a.csv", label="lable")


@pytest.mark.parametrize(
    "content",
    [
        'task,worker,label\nt1,ann,"cat\nt1,bob,dog\n',
        'task,worker,label,x\nt1,ann,cat,"oops\nt1,bob,dog,1\n',
    ],
)
def test_a_quote_that_is_never_closed_is_noticed(tmp_path, content):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(DataError, match=r"a quote .* opened and never closed; close it"):
        read(tmp_path / "a.csv")


def test_a_quote_that_is_never_closed_in_a_long_file(tmp_path):
    (tmp_path / "a.csv").write_text('task,worker,label\nt1,ann,"cat\n' + "t1,bob,dog\n" * 200_000)
    with pytest.raises(DataError, match="probably opened and never closed"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize(
    "end", ['t1,bob,"a\nb"\n', 't1,bob,5" nail\n', 't1,"bob",dog', "t1,bob,dog\n\n\n", "t1,bob,é\n"]
)
def test_other_quotes_at_the_end_are_fine(given, end):
    assert read(given("task,worker,label\nt1,ann,cat\n" + end)).n_annotations == 2


# --------------------------------------------------------------------------------------- encodings


def test_latin_1_is_refused_with_the_line_and_read_when_told(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("task,worker,label\nt1,ann,cat\nt1,bob,chaîne\n".encode("latin-1"))
    with pytest.raises(
        DataError, match=r"a.csv is not UTF-8: line 3 has the byte 0xee; .*'latin-1'"
    ):
        read(path)
    assert table_of(read(path, encoding="latin-1"))[1] == ("t1", "bob", "chaîne")


def test_latin_1_from_standard_input(monkeypatch):
    content = "task,worker,label\nt1,bob,chaîne\n".encode("latin-1")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(DataError, match=r"standard input is not UTF-8; save it as UTF-8 or give"):
        read("-")


def test_a_header_that_is_not_utf8(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("tâche,worker,label\nt1,ann,cat\n".encode("latin-1"))
    with pytest.raises(DataError, match="line 1 has the byte 0xe2"):
        read(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_utf16_is_refused_and_read_when_told(given, encoding):
    with pytest.raises(DataError, match=r"looks like UTF-16, not UTF-8; .* encoding='utf-16'"):
        read(given(ROWS.encode(encoding)))


def test_utf16_is_read_when_told(given):
    assert table_of(read(given(ROWS.encode("utf-16")), encoding="utf-16")) == EXPECTED


def test_an_unknown_encoding(tmp_path):
    (tmp_path / "a.csv").write_text(ROWS)
    with pytest.raises(ParameterError, match="no text encoding 'utf-9'; give utf-8, latin-1"):
        read(tmp_path / "a.csv", encoding="utf-9")


# -------------------------------------------------------------------------------------- many blocks


def test_many_blocks(given, monkeypatch):
    monkeypatch.setattr(delimited, "_BLOCK", 1 << 12)
    rng = np.random.default_rng(0)
    rows = [
        (f"task-{t}", f"w{w:02d}", "é" * int(k))
        for t, w, k in zip(
            rng.permutation(4000), rng.integers(0, 99, 4000), rng.integers(1, 4, 4000), strict=True
        )
    ]
    text = "".join(f'{t},"{w}",{k}\n' for t, w, k in rows)
    assert table_of(read(given("task,worker,label\n" + text))) == sorted(rows)


def test_a_bad_row_in_a_late_block_has_its_number(given, monkeypatch):
    monkeypatch.setattr(delimited, "_BLOCK", 1 << 12)
    text = "task,worker,label\n" + "t1,ann,cat\n" * 5000 + "t1\n"
    with pytest.raises(DataError, match="row 5001 has 1 fields where the header has 3"):
        read(given(text))


def test_truncated_gzip(tmp_path):
    path = tmp_path / "a.csv.gz"
    rng = np.random.default_rng(0)
    text = "task,worker,label\n" + "".join(f"{n},ann,cat\n" for n in rng.integers(0, 10**9, 99_999))
    path.write_bytes(gzip.compress(text.encode())[:-5000])
    with pytest.raises(DataError, match=r"a.csv.gz is cut off: its gzip data ends early; copy"):
        read(path)
    path.write_bytes(gzip.compress(text.encode())[:5000] + b"garbage" * 2000)
    with pytest.raises(DataError, match=r"a.csv.gz is damaged"):
        read(path)


def test_a_frame_has_all_columns_as_text(given):
    frame = read_frame(given("task,p_cat\n1,0.50\n2,\n"))
    assert frame.to_pydict() == {"task": ["1", "2"], "p_cat": ["0.50", ""]}


def test_a_long_value_is_not_an_open_quote(tmp_path):
    long = "long " * 40_000
    path = tmp_path / "a.csv"
    path.write_text(f'task,worker,label,x\nt1,ann,cat,"{long}"\nt1,bob,dog,"a\nb"\n')
    assert table_of(read(path)) == EXPECTED
    path.write_text(f'task,worker,label,x\nt1,ann,cat,"{long}\nt1,bob,dog,1\n')
    with pytest.raises(DataError, match="opened and never closed"):
        read(path)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_an_only_row_needs_no_newline(tmp_path, name, end):
    text = f"task,worker,label\n1,a,x{end}".replace(",", "\t" if "tsv" in name else ",")
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    labels = read(path)
    assert (labels.n_annotations, labels.classes.tolist()) == (1, ["x"])


def test_many_columns_take_linear_time(tmp_path):
    path = tmp_path / "a.csv"
    names = ["task", "label", *(f"column {i}" for i in range(40_000))]
    path.write_text(",".join(names) + "\n" + ",".join("x" * len(names)) + "\n")
    start = time.process_time()
    assert read_frame(path).shape == (1, len(names))
    assert time.process_time() - start < 8.0


@pytest.mark.parametrize(
    "again", ["task,worker,label", "\ufefftask,worker,label", "task, worker, label"]
)
def test_a_header_that_is_repeated_is_refused_with_its_row(given, again):
    joined = ROWS + f"{again}\nt2,ann,cat\n"
    with pytest.raises(DataError, match=r"row 3 repeats the names of the columns \('task', 'wor"):
        read(given(joined))


def test_a_header_is_found_behind_the_first_block(given):
    many = "".join(f"t{i},ann,cat\n" for i in range(100_000))
    with pytest.raises(DataError, match="row 100003 repeats the names of the columns"):
        read(given(ROWS + many + "task,worker,label\n"))


def test_names_of_columns_may_be_ids(given):
    data = read(given(ROWS + "task,worker,cat\nt1,worker,label\n"))
    assert data.n_annotations == 4
