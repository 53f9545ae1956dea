"""Damaged, cut off, absurd and hostile exports: one sentence each, in bounded memory."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import tracemalloc
import warnings
import zipfile
import zlib

import pytest

from wisecrowd.core.exceptions import DataError, WisecrowdError
from wisecrowd.io import limits, sources, untrusted
from wisecrowd.io.misreadings import ACCEPTABLE
from wisecrowd.io.tables import read

JSON = {
    "label_studio.json": "label-studio",
    "label_studio_min.json": "label-studio",
    "prodigy.jsonl": "prodigy",
    "argilla.json": "argilla",
    "argilla_flattened.jsonl": "argilla",
    "ground_truth_payload.json": "ground-truth",
    "labelbox.ndjson": "labelbox",
    "lewidi.json": "lewidi",
    "peerannot.json": "peerannot",
    "hugging_face.jsonl": "hugging-face",
}
TABLES = {
    "label_studio.csv": "label-studio",
    "mturk.csv": "mturk",
    "toloka.tsv": "toloka",
    "appen.csv": "appen",
    "zooniverse.csv": "zooniverse",
    "cleanlab.csv": "cleanlab",
}
TEXTS = {**JSON, **TABLES, "cvat_ann.xml": "cvat"}
ZIPPED = {"doccano": "doccano", "ground_truth.zip": "ground-truth", "cvat.zip": "cvat"}


def bounded(call, megabytes: int = 40):
    """Run something and check that it never held much memory."""
    tracemalloc.start()
    try:
        return call()
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < megabytes << 20


# --------------------------------------------------------------------------- damaged and cut off


@pytest.mark.parametrize("name", TEXTS)
def test_cut_off_in_a_record(fixtures, refused, name):
    text = (fixtures / name).read_text()
    cut = text.rfind("\n", 0, len(text) * 2 // 3) + 4
    assert name in refused(name, text[:cut], TEXTS[name])


@pytest.mark.parametrize("name", ZIPPED)
def test_cut_off_archive(export, refused, name):
    path = export(name)
    path = path[0] if isinstance(path, list) else path
    content = path.read_bytes()
    for format in (ZIPPED[name], "auto"):
        assert "cut off" in refused("cut.zip", content[: len(content) // 2], format)


@pytest.mark.parametrize(
    "content",
    ["", " \n", "[]", "{}", "[1, 2]", '"text"', "null", "[null]", '{"a": 1}', '[{"a": 1}]',
     "\0\0\0\0", "a,b\n1,2\n", "[" * 100, '{"a": ' * 100, "<a></a>", "<annotations>", "PK\3\4"],
)  # fmt: skip
@pytest.mark.parametrize("format", sorted({*TEXTS.values(), *ZIPPED.values(), "scale"}))
def test_something_else(refused, content, format):
    if (content, format) != ("a,b\n1,2\n", "cleanlab"):  # two workers without names
        refused("a.json", content, format)


@pytest.mark.parametrize("format", ["doccano", "ground-truth", "cvat"])
def test_no_archive_at_all(refused, format):
    assert "zip" in refused("a.zip", b"no archive", format)


def test_not_the_encoding_it_should_be(refused):
    record = '{"id": 1, "data": {}, "annotations": [{"x": "Grün"}]}'
    assert "UTF-8" in refused("a.json", record.encode("latin-1"), "label-studio")


def test_half_a_character(refused):
    text = json.dumps({"1": {"\ud800": 0}})
    assert "surrogate" in refused("a.json", text, "peerannot")


# ---------------------------------------------------------------- hostile: depth, size, archives


@pytest.mark.parametrize("name", JSON)
def test_nested_too_deeply(fixtures, refused, name):
    text = (fixtures / name).read_text()
    at = text.index("{") + 1
    deep = '"deep": ' + "[" * 100_000 + "]" * 100_000 + ", "
    assert "nested more than 100 levels" in refused(name, text[:at] + deep + text[at:], JSON[name])


def test_nested_xml(refused):
    head = "<annotations><meta><job><assignee><username>a</username></assignee></job></meta>"
    assert "nested more than" in refused("a.xml", head + "<a>" * 100_000, "cvat")


def test_xml_entities(refused):
    bomb = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]><annotations>&c;</annotations>'
    assert "document type" in refused("a.xml", '<?xml version="1.0"?>' + bomb, "cvat")
    outside = '<!DOCTYPE a SYSTEM "file:///etc/passwd"><annotations></annotations>'
    assert "document type" in refused("a.xml", outside, "cvat")


def test_an_endless_record(refused, monkeypatch):
    monkeypatch.setattr(untrusted, "MAX_RECORD", 1 << 20)
    text = '[{"data": "' + "x" * (3 << 20)
    assert "record 1 is longer than" in bounded(lambda: refused("a.json", text, "label-studio"))
    assert "bytes without an element" in refused("a.xml", "<a " + "x" * (3 << 20), "cvat")


def test_a_number_of_many_digits(refused):
    assert "record 1" in refused("a.json", '{"1": {"ann": ' + "9" * 10_000 + "}}", "peerannot")


def test_json_inside_a_cell_is_measured_too(written):
    deep = json.dumps("[" * 50_000)
    made = f'{{"workerId": "a", "annotationData": {{"content": {deep}}}}}'
    text = f'[{{"datasetObjectId": "1", "annotations": [{made}]}}]'
    with pytest.raises(DataError, match="no label that can be used"):
        read(written("a.json", text))


def bomb(name: str = "ann.jsonl", size: int = 24 << 20) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, b" " * size)
    return target.getvalue()


@pytest.mark.parametrize(
    ("format", "name"),
    [
        ("doccano", "ann.jsonl"),
        ("cvat", "annotations.xml"),
        ("ground-truth", "annotations/worker-response/iteration-1/0/a.json"),
    ],
)
def test_zip_bomb(refused, format, name):
    content = bomb(name)
    assert "would unpack from" in bounded(lambda: refused("a.zip", content, format), megabytes=4)


def test_zip_bomb_that_lies_about_its_size(refused):
    content = bytearray(bomb())
    for signature, offset in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        at = content.index(signature) + offset
        content[at : at + 4] = (1000).to_bytes(4, "little")
    message = bounded(lambda: refused("a.zip", bytes(content), "doccano"), megabytes=4)
    assert "damaged" in message or "empty" in message


def test_archive_of_many_files(refused, monkeypatch):
    monkeypatch.setattr(untrusted, "MAX_MEMBERS", 3)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for number in range(4):
            archive.writestr(f"{number}.jsonl", "{}")
    assert "holds 4 files" in refused("a.zip", target.getvalue(), "doccano")


@pytest.mark.parametrize(
    "name", ["../ann.jsonl", "a/../../ann.jsonl", "/etc/ann.jsonl", "..\\a.jsonl", "C:\\a.jsonl"]
)
def test_names_that_point_outside(refused, tmp_path, name):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(name, '{"id": 1, "label": ["cat"]}\n')
    for format in ("doccano", "auto"):
        assert "points outside the archive" in refused("a.zip", target.getvalue(), format)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.zip"]  # nothing is ever extracted


def test_links_passwords_and_odd_compression(refused):
    link = zipfile.ZipInfo("ann.jsonl")
    link.external_attr = 0o120777 << 16
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert "link" in refused("a.zip", target.getvalue(), "doccano")
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("ann.jsonl", '{"id": 1, "label": ["cat"]}\n')
    assert "other than deflate" in refused("a.zip", target.getvalue(), "doccano")
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("ann.jsonl", "{}")
    content = bytearray(target.getvalue())
    content[content.index(b"PK\1\2") + 8] |= 1
    assert "password" in refused("a.zip", bytes(content), "doccano")


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links here")
def test_a_folder_with_a_link_to_outside(tmp_path):
    job = tmp_path / "job" / "annotations" / "worker-response" / "iteration-1" / "0"
    job.mkdir(parents=True)
    (tmp_path / "secret.json").write_text("{}")
    os.symlink(tmp_path / "secret.json", job / "a.json")
    with pytest.raises(DataError, match=r"a\.json is a link to outside"):
        read(tmp_path / "job")


def test_gzip_bomb(written, monkeypatch):
    monkeypatch.setattr(sources, "SMALL_TEXT", 1 << 20)
    packed = gzip.compress(b"task,worker,label\n" + b"1,a,x\n" * (1 << 20))
    path = written("a.csv.gz", packed)
    with limits.limits(ratio=100), pytest.raises(DataError, match=r"limits\(ratio=\d+\)"):
        read(path)
    with limits.limits(ratio=2000):
        assert read(path, duplicates="keep", accept=ACCEPTABLE).n_annotations == 1 << 20


def test_gzip_that_is_damaged(refused):
    packed = bytearray(gzip.compress(b'{"1": {"ann": 0}}' * 1000))
    packed[30] ^= 0xFF
    assert "a.json.gz" in refused("a.json.gz", bytes(packed), "peerannot")
    with pytest.raises(zlib.error):
        zlib.decompress(bytes(packed[10:]), -15)


# --------------------------------------------------------------- anything at all, anywhere at all

ODD = [None, 5, -1.5, True, "x", "", [], {}, [[]], [{}], {"a": 1}, [None], "[" * 300, 10**30,
       "1e999"]  # fmt: skip


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(child, (*path, key))


def put(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


def read_or_refuse(path, format):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            outcome = f"{read(path, format).n_annotations} annotations."
        except WisecrowdError as error:
            outcome = str(error)
    assert outcome.endswith((".", "?")), outcome
    assert "\n" not in outcome
    assert not outcome.startswith("0 ")


@pytest.mark.parametrize("name", JSON)
def test_any_value_in_any_place_of_json(fixtures, written, name):
    text = (fixtures / name).read_text()
    by_line = name.endswith(("jsonl", "ndjson"))
    whole = [json.loads(line) for line in text.splitlines()] if by_line else json.loads(text)
    chance = random.Random(0)
    everywhere = list(places(whole))[1:]
    for _ in range(int(os.environ.get("WISECROWD_MUTATIONS", "15"))):
        odd = put(whole, chance.choice(everywhere), chance.choice(ODD))
        new = "\n".join(map(json.dumps, odd)) if by_line else json.dumps(odd)
        read_or_refuse(written(name, new), JSON[name])


@pytest.mark.parametrize("name", TABLES)
def test_any_value_in_any_cell(fixtures, written, name):
    separator = "\t" if name.endswith(".tsv") else ","
    rows = list(csv.reader(io.StringIO((fixtures / name).read_text()), delimiter=separator))
    chance = random.Random(0)
    for _ in range(int(os.environ.get("WISECROWD_MUTATIONS", "15"))):
        odd = [list(row) for row in rows]
        row = chance.randrange(len(rows))
        odd[row][chance.randrange(len(rows[row]))] = str(chance.choice(ODD))
        target = io.StringIO()
        csv.writer(target, delimiter=separator, lineterminator="\n").writerows(odd)
        read_or_refuse(written(name, target.getvalue()), TABLES[name])


ANSWERS = {
    "mturk.csv": "Answer.animal.label",
    "toloka.tsv": "OUTPUT:animal",
    "appen.csv": "animal",
    "zooniverse.csv": "annotations",
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_export_without_an_answer(fixtures, refused, name):
    separator = "\t" if name.endswith(".tsv") else ","
    header, *rows = csv.reader((fixtures / name).read_text().splitlines(), delimiter=separator)
    for row in rows:
        row[header.index(ANSWERS[name])] = ""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows([header, *rows])
    assert "holds no label that can be used" in refused(name, text.getvalue(), TABLES[name])
