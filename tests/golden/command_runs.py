"""Runs of every command of the command line on small stored files.

A case is a name and one or several command lines, which run in a folder of their own with copies of
``inputs`` and of the platforms' exports. Stored are, for every line, its exit code and what it
printed, and every file that was written. Times, versions and digests are masked, because they
change without a change of results.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from tests.golden.results import HERE

from wisecrowd.cli.main import run
from wisecrowd.cli.run import progress

INPUTS = HERE / "inputs"
EXPORTS = HERE.parent / "io" / "fixtures"
MASKED = "(masked)"
# Keys of manifests, summaries and saved models whose values say when and with what it was made.
MASKED_KEYS = frozenset({
    "cpu_seconds", "created", "digest", "hash_seed", "libraries", "numpy", "output_sha256",
    "platform", "python", "sha256", "threads", "time", "wisecrowd", "wisecrowd_version",
})  # fmt: skip

CASES: dict[str, dict[str, list[str]]] = {
    "aggregate": {
        "table": ["aggregate crowd.csv"],
        "json": ["aggregate crowd.csv --json --soft -m one-coin"],
        "files": [
            "aggregate crowd.csv -m glad -o labels.csv.gz --workers-to workers.csv --soft",
            "aggregate crowd.csv -m mace -p n_init=3 --seed 7 -q -o labels.jsonl"
            " --workers-to workers.tsv --soft-labels-to soft.npy",
        ],
        "json file": ["aggregate crowd.csv -m majority-vote --json -o result.json"],
        "gold and calibration": [
            "aggregate crowd.csv --gold gold.csv --gold-columns item,class --calibrate --json"
        ],
        "wide": ["aggregate wide.csv --wide -m wawa --task item"],
        "columns": [
            "aggregate repeats.csv --task image --worker who --label said --timestamp when"
            " --weight count --abstain skip --classes cat,dog,fox,owl --duplicates last --soft"
        ],
        "no header": [
            "aggregate crowd.csv --no-header --columns a,b,c --task a --worker b --label c"
            " --exclude-workers '1*' -m majority-vote"
        ],
        "export": [
            "aggregate label_studio.json -m majority-vote --predictions predictions.json",
        ],
        "saved": ["aggregate crowd.csv -m zen-crowd --save model -o labels.tsv"],
        "pseudonyms": [
            "aggregate crowd.csv --pseudonymize worker.key -o labels.csv --workers-to workers.csv"
        ],
        "refused": [
            "aggregate missing.csv",
            "aggregate crowd.csv -m dawid-skeen",
            "aggregate crowd.csv -p tolerance=1",
            "aggregate crowd.csv -m dawid-skene -p tol=-1",
            "aggregate crowd.csv --label answer",
            "aggregate crowd.csv --type numbers",
            "aggregate crowd.csv -m kos",
            "aggregate repeats.csv --task image --worker who --label said --duplicates error",
            "aggregate crowd.csv -o crowd.csv",
            "aggregate crowd.csv -o labels.xyz",
            "aggregate",
        ],
    },
    "audit": {
        "table": ["audit crowd.csv"],
        "json with gold": ["audit crowd.csv --gold gold.csv --gold-columns item,class --json"],
        "folder": ["audit crowd.csv -o findings -q"],
        "fail on": ["audit crowd.csv --fail-on medium -q", "audit crowd.csv --fail-on high -q"],
        "pruned": ["audit crowd.csv --part spammers --prune-to clean.csv --unlabelled spare"],
        "parts": ["audit crowd.csv --part agreement --part clones --part groups --json"],
        "refused": ["audit crowd.csv --part nonsense", "audit crowd.csv --prune clones"],
    },
    "check": {
        "list": ["check crowd.csv -n 30 -m one-coin"],
        "looks": ["check crowd.csv -n 40 --looks 20 -m one-coin -o check.csv --json"],
        "project": ["check crowd.csv -n 30 -m one-coin -o check.json"],
        "known answers": [
            "check crowd.csv --checked truth.csv -m one-coin",
            "check crowd.csv --checked truth.csv -m one-coin --json --floor 1",
        ],
        "refused": [
            "check crowd.csv --checked features.csv",
            "check crowd.csv --floor 0.9",
            "check crowd.csv --looks many",
            "check wide.csv --wide --task item -o wide.csv",
        ],
    },
    "compare": {
        "with truth": [
            "compare crowd.csv --truth truth.csv --methods"
            " majority-vote,wawa,one-coin,dawid-skene,glad,kos,bwa,coupled-nmf"
        ],
        "without truth": [
            "compare crowd.csv --json --methods majority-vote,zen-crowd,dawid-skene,rank-one"
        ],
        "file": ["compare crowd.csv --methods majority-vote,mmsr,crh -o scores.csv"],
        "learners": [
            "compare crowd.csv --features features.csv --truth truth.csv --json"
            " --methods raykar,ccem -p epochs=3"
        ],
        "refused": ["compare crowd.csv --methods nobody", "compare crowd.csv --truth crowd.csv"],
    },
    "convert": {
        "formats": [
            "convert wide.csv - --wide --task item",
            "convert repeats.csv plain.jsonl --task image --worker who --label said --weight count",
            "convert repeats.csv plain.tsv --task image --worker who --label said",
            "convert crowd.csv plain.parquet",
        ],
        "exports": [
            "convert label_studio.json -",
            "convert toloka.tsv toloka.csv",
            "convert mturk.csv -",
            "convert appen.csv - --label animal",
            "convert labelbox.ndjson -",
            "convert zooniverse.csv -",
            "convert prodigy.jsonl -",
            "convert crowd_kit.csv -",
        ],
        "pseudonyms": ["convert wide.csv - --wide --task item --pseudonymize worker.key"],
        "refused": ["convert crowd.csv plain.xyz", "convert crowd.csv crowd.csv"],
    },
    "agreement": {
        "table": ["agreement crowd.csv"],
        "json": ["agreement crowd.csv --json --pairs --floor 0.9"],
        "file": ["agreement crowd.csv -o agreement.csv"],
        "refused": ["agreement missing.csv", "agreement crowd.csv --level interval"],
    },
    "estimate": {
        "table": ["estimate crowd.csv --known gold.csv --known-columns item,class"],
        "json": ["estimate crowd.csv --known gold.csv --known-columns item,class --json -q"],
        "groups and clusters": [
            "estimate crowd.csv --known truth.csv --attributes truth.csv --by label -m one-coin"
            " -p max_iter=50 --level .9 -o shares.csv",
            "estimate crowd.csv --known gold.csv --known-columns item,class --attributes"
            " features.csv --cluster x --seed 3",
        ],
        "a saved fit and a floor": [
            "aggregate crowd.csv -m majority-vote --save model -o labels.csv -q",
            "estimate crowd.csv --known truth.csv --model model --of shares --floor dog=.1",
            "estimate crowd.csv --known truth.csv --model model --floor dog=.9 -q",
        ],
        "refused": [
            "estimate crowd.csv",
            "estimate crowd.csv --known truth.csv --of mean",
            "estimate crowd.csv --known truth.csv --by colour",
        ],
    },
    "evaluate": {
        "table": ["evaluate scored.csv --truth truth.csv"],
        "json": ["evaluate scored.csv --truth truth.csv --json"],
        "file": ["evaluate scored.csv --truth truth.csv -o scores.csv"],
        "columns": [
            "evaluate gold.csv --task item --label class --truth truth.csv"
            " --truth-columns task,label"
        ],
        "refused": ["evaluate scored.csv", "evaluate scored.csv --truth features.csv"],
    },
    "inspect": {
        "tables": ["inspect crowd.csv", "inspect wide.csv"],
        "exports": ["inspect label_studio.json", "inspect toloka.tsv", "inspect zooniverse.csv"],
        "json": ["inspect crowd.csv --json", "inspect label_studio.json --json"],
        "refused": ["inspect missing.csv", "inspect repeats.csv"],
    },
    "loop": {
        "refused": [
            "loop campaign",
            "loop campaign --tasks truth.csv --listen nonsense",
            "loop campaign --tasks truth.csv --listen 0.0.0.0:8765",
            "loop campaign --tasks truth.csv --secret plain",
            "loop campaign --tasks truth.csv --policy uncertian",
        ],
    },
    "methods": {
        "names": ["methods", "methods --learning"],
        "long": ["methods --long"],
        "json": ["methods --json", "methods --learning --json"],
    },
    "next": {
        "table": ["next crowd.csv --tasks truth.csv -n 5"],
        "json": ["next crowd.csv --tasks truth.csv -n 3 --json --max-labels 7 --seed 2"],
        "gold and workers": [
            "next crowd.csv --tasks truth.csv --workers crowd.csv --gold gold.csv"
            " --gold-columns item,class --gold-share 0.2 -n 8 -o next.csv",
        ],
        "prior": [
            "aggregate crowd.csv -m one-coin --soft -o soft.csv -q",
            "next crowd.csv --tasks truth.csv -n 4 --task-prior soft.csv --policy margin",
        ],
        "stop": ["next crowd.csv --tasks truth.csv --budget 600"],
        "refused": [
            "next crowd.csv",
            "next crowd.csv --tasks truth.csv --policy uncertian",
            "next crowd.csv --tasks truth.csv --min-labels 3 --max-labels 2",
            "next crowd.csv --tasks truth.csv --target 0.9",
        ],
    },
    "replay": {
        "table": ["replay crowd.csv --truth truth.csv --seeds 2 -m one-coin"],
        "json": [
            "replay crowd.csv --truth truth.csv --seeds 1 --budgets 50,100 --json -m majority-vote"
            " --policies margin"
        ],
        "refused": [
            "replay crowd.csv",
            "replay crowd.csv --truth truth.csv --budgets 0",
            "replay crowd.csv --truth truth.csv --plot plot.txt",
        ],
    },
    "judges": {
        "table": ["judges crowd.csv --judges 0,5 --epsilon 0.2"],
        "json": ["judges crowd.csv --judges 0,5,12 --known truth.csv --json -q"],
        "files": ["judges crowd.csv --judges 0,5 -o tables --fail-on medium"],
        "refused": [
            "judges crowd.csv",
            "judges crowd.csv --judges 99",
            "judges crowd.csv --epsilon 2",
        ],
    },
    "report": {
        "summary": ["report crowd.csv --json"],
        "truth and gold": [
            "report crowd.csv --json --truth truth.csv --gold gold.csv --gold-columns item,class"
            " -m one-coin --title 'Three animals' -o summary.json"
        ],
        "page": ["report crowd.csv -o page.html -m zen-crowd --pseudonymize worker.key"],
        "judges": ["report crowd.csv --judges 0,5 --epsilon 0.2 --json"],
        "refused": ["report crowd.csv --json -o -", "report missing.csv"],
    },
    "simulate": {
        "default": ["simulate crowd --tasks 20 --seed 1"],
        "composed": [
            "simulate crowd --tasks 15 --workers '6*dirichlet + 2*colluders + 1*always-one-class'"
            " --assignment regular:3,5 --difficulty beta:1,3 --classes a,b,c"
            " --class-prior 0.5,0.3,0.2 --seed 4"
        ],
        "list": ["simulate x --list"],
        "refused": ["simulate crowd --workers nobody", "simulate crowd --assignment regular:3,7"],
    },
    "train": {
        "default": [
            "train features.csv crowd.csv -o model --labels-to labels.csv --workers-to workers.csv"
            " --json"
        ],
        "a network": [
            "train features.csv crowd.csv -o model -m agg-net --epochs 3 --labels-to labels.csv"
            " --workers-to workers.csv --json"
        ],
        "without torch": [
            "train features.csv crowd.csv -o model -m raykar --gold gold.csv"
            " --gold-columns item,class --labels labels.jsonl"
        ],
        "from the crowd": [
            "train features.csv crowd.csv -o model -m crowd-layer --epochs 4 --valid-from-crowd"
            " --workers-to workers.jsonl"
        ],
        "refused": [
            "train features.csv crowd.csv -o model -m dawid-skene",
            "train crowd.csv features.csv -o model",
        ],
    },
    "plan": {
        "table": ["plan", "plan --width .05,.1 --epsilon .1"],
        "json": ["plan --width .05 --separate .2 --power .9 --level .9 --json"],
        "pilot": [
            "plan crowd.csv --known gold.csv --known-columns item,class --width .1 --separate .3"
            " --labels 3,5 -o plan.csv",
            "plan crowd.csv --labels 9",
        ],
        "refused": ["plan --labels 3", "plan --width .7", "plan --epsilon .3"],
    },
    "predict": {
        "table": [
            "train features.csv crowd.csv -o model -m raykar -q",
            "predict model new_features.csv --soft",
            "predict model features.csv --answers crowd.csv --json -o predictions.csv",
        ],
        "network": [
            "train features.csv crowd.csv -o model -m ccem --epochs 3 -q",
            "predict model new_features.csv --json --soft",
        ],
        "refused": ["predict nowhere features.csv"],
    },
}


def run_case(command: str, case: str, folder: Path) -> dict[str, Any]:
    """Run a case in an empty folder; return what it printed and wrote."""
    sources = [path for place in (INPUTS, EXPORTS) for path in place.iterdir() if path.is_file()]
    found = run_lines(CASES[command][case], sources, folder)
    if command == "predict":  # what is stored of a model is that of train
        found["files"] = {k: v for k, v in found["files"].items() if "model" not in k}
    return found


def run_lines(lines: Sequence[str], sources: Sequence[Path], folder: Path) -> dict[str, Any]:
    """Run command lines in an empty folder with copies of some files."""
    for source in sources:
        shutil.copy(source, folder)
    given = {path.name for path in folder.iterdir()}
    with contextlib.chdir(folder):
        printed = [_run_line(line) for line in lines]
    written = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))}
    files = {
        name: _content(path)
        for name, path in written.items()
        if path.is_file() and name not in given
    }
    return {"lines": printed, "files": files}


def runs(command: str) -> dict[str, Any]:
    """Return what is stored of a command: its options, and every case."""
    found: dict[str, Any] = {"options": options_of(command)}
    for case in CASES[command]:
        with tempfile.TemporaryDirectory() as folder:
            found[case] = run_case(command, case, Path(folder))
    return found


def read_runs(command: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the machine that wrote the results of a command, and the results by case."""
    stored = json.loads((HERE / "commands" / f"{command}.json").read_text())
    return stored.pop("machine"), stored


def options_of(command: str) -> list[str]:
    """Return the options that the help of a command names."""
    found = _run_line(f"{command} --help")
    return sorted(set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", "\n".join(found["out"]))))


def _run_line(line: str) -> dict[str, Any]:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        _fixed_environment(),
        mock.patch.object(progress, "DELAY", float("inf")),  # also on a slow machine
    ):
        code = run(shlex.split(line))
    return {"line": line, "code": code, "out": _printed(out), "err": _printed(err)}


@contextlib.contextmanager
def _fixed_environment() -> Iterator[None]:
    """Set what the output may depend on; put it back afterwards."""
    before = dict(os.environ)
    os.environ |= {"COLUMNS": "100", "SOURCE_DATE_EPOCH": "0"}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _printed(stream: io.TextIOWrapper) -> Any:
    """Return JSON as its masked value, other text as its lines without times."""
    stream.seek(0)
    text = stream.read()
    if text.startswith(("{", "[")):
        with contextlib.suppress(ValueError):
            return masked(json.loads(text))
    return _without_seconds(text.splitlines())


def _without_seconds(lines: list[str]) -> list[str]:
    """Cut the last column of a table whose header ends in "seconds"."""
    kept, cut = [], False
    for line in lines:
        cut = bool(line) and (cut or line.endswith("seconds"))
        kept.append(re.sub(r"[ ,\t]+[^ ,\t]+$", "", line) if cut else line)
    return kept


def _cells_without_seconds(row: list[str], header: list[str]) -> list[str]:
    return [cell for cell, name in zip(row, header, strict=True) if name != "cpu_seconds"]


def masked(value: Any, key: str = "") -> Any:
    """Return a JSON value in which times, versions and digests are replaced."""
    if key in MASKED_KEYS:
        return MASKED
    if isinstance(value, dict):
        return {name: masked(item, name) for name, item in value.items()}
    return [masked(item) for item in value] if isinstance(value, list) else value


def _content(path: Path) -> Any:
    """Return what is stored of a written file; of pages and networks only that they exist."""
    match path.name.rsplit(".", 1)[-1]:
        case "csv":
            rows = list(csv.reader(path.read_text().splitlines()))
            return [",".join(_cells_without_seconds(row, rows[0])) for row in rows]
        case "tsv" | "md":
            return path.read_text().splitlines()
        case "gz":
            import gzip

            return gzip.decompress(path.read_bytes()).decode().splitlines()
        case "json":
            return masked(json.loads(path.read_text()))
        case "jsonl":
            return [masked(json.loads(line)) for line in path.read_text().splitlines()]
        case "npy":
            return np.load(path, allow_pickle=False).tolist()
        case "parquet":
            from pyarrow import parquet

            return parquet.read_table(path).to_pydict()
    return MASKED
