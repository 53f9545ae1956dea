"""Numbers: decimal commas of files with semicolons, currencies, empty weights, huge ids."""

from __future__ import annotations

import csv
import json
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, WisecrowdError
from wisecrowd.io.cells import neutralised, restored
from wisecrowd.io.tables import read, read_frame, write_table


def written(path, header, rows, separator=";"):
    lines = [header, *rows]
    path.write_text("".join(separator.join(map(str, line)) + "\n" for line in lines))
    return path


def crowd(value, n=5):
    return [(f"t{i}", f"w{j}", *value(i, j)) for i in range(n) for j in range(3)]


HEADER = ["task", "worker", "value"]


def test_decimal_commas_of_values(tmp_path):
    path = written(tmp_path / "a.csv", HEADER, crowd(lambda i, j: (f"{i},{j}5",)))
    data = wc.read(path, type="numbers")
    assert data.value[:4].tolist() == [0.05, 0.15, 0.25, 1.05]
    assert any("decimal commas" in note for note in data.notes)
    wc.pack(path, tmp_path / "pack", type="numbers")
    assert wc.read(tmp_path / "pack").value[:4].tolist() == [0.05, 0.15, 0.25, 1.05]


def test_decimal_commas_with_signs(tmp_path):
    cells = ["-1,5", "+2,25", "1,5e3", "€ 0,05", " 7 "]
    path = written(tmp_path / "a.csv", HEADER, [("t", f"w{j}", x) for j, x in enumerate(cells)])
    assert wc.read(path, type="numbers").value.tolist() == [-1.5, 2.25, 1500.0, 0.05, 7.0]


def test_decimal_commas_in_other_columns(tmp_path):
    header = ["task", "worker", "x", "y", "width", "height", "label", "weight"]
    path = written(
        tmp_path / "b.csv", header, crowd(lambda i, j: ("1,5", 2, "3,5", 4, "1,5", "0,5"))
    )
    boxes = wc.read(path, type="boxes")
    assert boxes.weight.tolist() == [0.5] * 15
    assert boxes.to_frame()["x"].tolist() == [1.5] * 15
    assert boxes.classes.tolist() == ["1,5"]
    wide = written(
        tmp_path / "c.csv", ["id", "r_1", "r_2"], [(i, f"{i},5", f"{i},7") for i in "12"]
    )
    assert wc.read(wide, wide=True, type="numbers").value.tolist() == [1.5, 1.7, 2.5, 2.7]
    features = written(tmp_path / "f.csv", ["task", "a", "b"], [("t0", "1,5", 2), ("t1", "-,5", 3)])
    assert wc.read_features(features).X.tolist() == [[1.5, 2.0], [-0.5, 3.0]]


def test_ids_and_classes_keep_their_commas(tmp_path):
    rows = [(f"1,{i}", f"2,{j}", f"{i % 2},5") for i in range(3) for j in range(2)]
    labels = wc.read(written(tmp_path / "a.csv", ["task", "worker", "label"], rows))
    assert labels.tasks.tolist() == ["1,0", "1,1", "1,2"]
    assert labels.workers.tolist() == ["2,0", "2,1"]
    assert labels.classes.tolist() == ["0,5", "1,5"]
    assert read_frame(tmp_path / "a.csv")["label"].to_pylist()[0] == "0,5"


def test_commas_and_points_in_one_column_are_refused(tmp_path):
    path = written(tmp_path / "a.csv", HEADER, crowd(lambda i, j: (f"{i}{',.'[j % 2]}5",)))
    with pytest.raises(DataError, match=r"'value' .* with a comma and with a point"):
        wc.read(path, type="numbers")


@pytest.mark.parametrize("separator", [",", "\t"])
def test_commas_of_other_files_stay_refused(tmp_path, separator):
    path = written(tmp_path / "a.csv", HEADER, crowd(lambda i, j: (f'"{i},5"',)), separator)
    with pytest.raises(DataError, match="'0,5', which is not a number"):
        wc.read(path, type="numbers")


def test_thousands_are_not_guessed(tmp_path):
    path = written(tmp_path / "a.csv", HEADER, crowd(lambda i, j: (f"1.{i}34,5",)))
    with pytest.raises(DataError, match="which is not a number"):
        wc.read(path, type="numbers")


def test_gold_and_truth_with_decimal_commas(tmp_path, capfd):
    from wisecrowd.cli.main import run

    path = written(tmp_path / "a.csv", HEADER, crowd(lambda i, j: (f"{i},{j}",)))
    gold = written(tmp_path / "g.csv", ["task", "value"], [("t0", "7,5")])
    out = tmp_path / "out.csv"
    assert (
        run(["aggregate", str(path), "--type", "numbers", "--gold", str(gold), "-o", str(out)]) == 0
    )
    assert read_frame(out)["value"].to_pylist()[0] == "7.5"
    capfd.readouterr()


# ------------------------------------------------------------------------------------ currencies


@pytest.mark.parametrize("signs", ["$€", "€£", "£¥", "$€£"])
def test_currencies_are_not_mixed(tmp_path, signs):
    cells = crowd(lambda i, j: (f"{signs[j % len(signs)]}{i}",))
    with pytest.raises(
        DataError, match=r"several currencies, '\S0' in row 1 .* and '\S0' in row 2"
    ):
        wc.read(written(tmp_path / "a.csv", HEADER, cells, ","), type="numbers")
    values = [cell for _, _, cell in cells]
    with pytest.raises(DataError, match="several currencies"):
        wc.CrowdNumbers.from_arrays(range(15), range(15), values)


@pytest.mark.parametrize("form", ["${}", "{} €", "£{}"])
def test_one_currency_is_read(tmp_path, form):
    cells = crowd(lambda i, j: (form.format(i) if j else i,))
    path = written(tmp_path / "a.csv", HEADER, cells, ",")
    assert wc.read(path, type="numbers").value.tolist() == [
        float(i) for i in range(5) for _ in "abc"
    ]


# --------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("blank", ["", "  "])
def test_an_empty_column_of_weights_is_not_read(tmp_path, blank):
    header = ["task", "worker", "label", "weight"]
    path = written(tmp_path / "a.csv", header, crowd(lambda i, j: ("ab"[i % 2], blank)), ",")
    data = wc.read(path)
    assert data.weight is None
    assert "the column 'weight' is empty and not read" in data.notes
    with pytest.raises(DataError, match="weight"):
        wc.read(path, weight="weight")
    assert wc.pack(path, tmp_path / "pack").summary.n_annotations == 15


def test_half_empty_weights_stay_refused(tmp_path):
    header = ["task", "worker", "label", "weight"]
    for rows in (
        crowd(lambda i, j: ("ab"[i % 2], "" if j else 1)),
        crowd(lambda i, j: ("ab"[i % 2], "" if i < 400_000 else 1), 400_001),
    ):
        with pytest.raises(DataError, match="weight"):
            wc.read(written(tmp_path / "a.csv", header, rows, ","))


def test_null_weights_of_jsonl(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"task": f"t{i}", "worker": f"w{j}", "label": "ab"[i % 2], "weight": None}
            for i in range(4) for j in range(2)]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert wc.read(path).weight is None


# ------------------------------------------------------------------------------------ huge numbers


@pytest.mark.parametrize("third", [1e308, -1e308, 2**63, 10**30, float("inf")])
@pytest.mark.parametrize("key", ["task", "worker", "label"])
def test_ids_beyond_64_bits_are_refused_clearly(tmp_path, third, key):
    path = tmp_path / "a.jsonl"
    for row in ({"x": 1, "y": 2, "width": 3, "height": 4}, {"answers": ["a"]}):
        whole = {"task": "t", "worker": "w", "label": "l"} | row
        lines = [whole | {key: value} for value in (0, 1, third)]
        if "answers" in row:
            lines = [
                {k: v for k, v in line.items() if k != "label" or key == "label"} for line in lines
            ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        for kind in ("boxes", "labels", None):
            with suppress(WisecrowdError):  # any other exception fails
                wc.read(path, type=kind)


HOSTILE = ["=cmd()", "+A1", "-A1", "@SUM(1)", "\t=1", "\r=1", "＝1", "'=a", "''+b", "--1"]
HARMLESS = ["-1", "+1", "-1.5e3", "+.5", "a=b", "'tis", "", "7", "x@y", "'"]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_spreadsheet_would_run_starts_with_an_apostrophe(text):
    assert neutralised(pa.array([text, None])).to_pylist() == ["'" + text, None]


@pytest.mark.parametrize("text", HARMLESS)
def test_the_rest_stays(text):
    assert neutralised(pa.array([text])).to_pylist() == [text]


@given(st.lists(st.text(st.sampled_from("'=+-@\t1.ea ＝"), max_size=6) | st.text(max_size=6)))
def test_reading_gives_back_what_was_written(texts):
    array = pa.array(texts, pa.string())
    assert restored(neutralised(array)).to_pylist() == texts


def test_numbers_and_dictionaries():
    assert neutralised(pa.array([-1, 2])).to_pylist() == [-1, 2]
    assert neutralised(pa.array(["=a", "b"]).dictionary_encode()).to_pylist() == ["'=a", "b"]
    assert restored(pa.array([-1])).to_pylist() == [-1]


@pytest.mark.filterwarnings("ignore:.* count as different tasks")
@pytest.mark.parametrize(("suffix", "separator"), [("csv", ","), ("tsv", "\t")])
def test_tables_are_defused_and_read_back(tmp_path, suffix, separator):
    path = tmp_path / f"labels.{suffix}"
    ids = [text for text in HOSTILE + HARMLESS if text]
    columns = {"task": ids, "worker": ["=w"] * len(ids), "label": ["a", "-1"] * (len(ids) // 2)}
    columns["label"] += ["a"] * (len(ids) - len(columns["label"]))
    write_table(path, columns)
    with path.open(newline="", encoding="utf-8") as file:
        cells = [row["task"] for row in csv.DictReader(file, delimiter=separator)]
    assert not any(cell.startswith(("=", "@", "\t", "\r", "＝", "--", "+A")) for cell in cells)
    assert read_frame(path)["task"].to_pylist() == ids
    labels = read(path, accept="one-worker")
    assert set(labels.tasks.tolist()) == set(ids)
    assert labels.workers.tolist() == ["=w"]
    assert labels.classes.tolist() == ["-1", "a"]


def test_can_be_turned_off_and_touches_no_other_format(tmp_path):
    write_table(tmp_path / "raw.csv", {"task": ["=a"], "n": [1]}, neutralise_formulas=False)
    assert (tmp_path / "raw.csv").read_text() == "task,n\n=a,1\n"
    for name in ("a.jsonl", "a.parquet"):
        write_table(tmp_path / name, {"task": ["=a"], "n": [1]})
        assert read_frame(tmp_path / name)["task"].to_pylist() == ["=a"]


def chat(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": text}]


ROWS = [
    {"prompt": "p1", "chosen": chat("good"), "rejected": chat("bad")},
    {"prompt": "p2", "chosen": chat("fine"), "rejected": chat("bad")},
]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_the_last_message_is_the_item(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    if suffix == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in ROWS))
    else:
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    pairs = read(path)
    assert pairs.items.tolist() == ["bad", "fine", "good"]
    assert sorted(pairs.items[pairs.left].tolist()) == ["fine", "good"]
    assert pairs.outcome.tolist() == [0, 0]
    assert read(path, task="prompt").tasks.tolist() == ["p1", "p2"]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
@pytest.mark.parametrize("value", [[1, 2], [{"text": "good"}], []])
def test_other_lists_are_refused(tmp_path, suffix, value):
    path = tmp_path / f"a.{suffix}"
    rows = [{"chosen": value, "rejected": "bad"}]
    if suffix == "jsonl":
        path.write_text(json.dumps(rows[0]))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    with pytest.raises(DataError, match="give one plain value per annotation"):
        read(path)
