r"""Every command in a folder full of a user's files that have the names that wisecrowd uses.

A command that writes to new names must succeed and leave all of them as they are, also those that
look like temporary files, progress or manifests. A command whose outputs have the names of some of
them must be refused, and leave nothing behind.

>>> len({case.name for case in CASES}) == len(CASES)
True
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.faults import run_with

from wisecrowd.cli.main import run

THESIS = "Chapter 1. It was a dark and stormy night.\n"
TEMPORARY = ".wisecrowd-0123456789abcdef.tmp"
# Files of a user in the folder in which commands run.
FILES = (
    "table/thesis.txt", "passes/thesis.txt", "passes/pass-00001", "output", "job-7", "unfinished",
    "shards/thesis.txt", "shards/0000/cell.npy", "buckets/0.arrow", "progress.json", "pack.json",
    "notes.tmp", TEMPORARY, ".wisecrowd-notes.tmp", ".wisecrowd-fedcba9876543210.tmp/thesis.txt",
    "old.scratch/thesis.txt", "old.scratch/passes/pass-00001", ".wisecrowd-work.json",
    "out.csv", "out.csv.scratch/passes/thesis.txt", "w.csv", "w2.csv.manifest.json", "out.json",
    "soft.npy", "soft2.ids.json", "coco.json", "p.jsonl", "plot.svg", "page.md",
    "report.html", "page.html.manifest.json", "log", "model.log.jsonl", "model.checkpoint",
    "model.checkpoint.refit", "model2.checkpoint.refit", "model/weights.npy", "model3/model.json",
    "crowd/answers.csv", "crowd/truth.csv", "crowd/SOURCE.md", "tables/findings.csv",
    "parts/part-00000.parquet", "parts2.scratch/output", "packs/shards/thesis.txt",
    "packs2/progress.json", "packs2/buckets/thesis.txt", "packs3", ".packs4.lock",
    "campaign/outbox/next.csv", "campaign/done/a.csv", "campaign2/loop.json", "campaign3/loop.lock",
    "campaign4/campaign.db", "campaign5/loop.unfinished", "campaign/" + TEMPORARY,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A command, and whether its outputs have the names of files that are there."""

    name: str
    words: str
    refused: bool

    @property
    def arguments(self) -> list[str]:
        return self.words.split()


def _cases() -> Iterator[Case]:
    fit = "aggregate in/answers.csv -m majority-vote -q"
    boxes = "aggregate in/boxes.csv --type boxes -q"
    pairs = "aggregate in/pairs.csv --type pairs -m bradley-terry -q"
    packed = "aggregate in/crowd.pack -m majority-vote -q --engine files"
    train = "train in/features.csv in/answers.csv -m crowd-layer --epochs 1 -q"
    clear = {
        "labels": f"{fit} -o new.csv --workers-to new-w.csv --save new-model",
        "exports": f"{fit} --soft-labels-to new.npy --predictions-to new.json --to-name image",
        "json": f"{fit} --json -o new.json",
        "boxes": f"{boxes} -o new.csv --assignments-to new-a.csv --coco-to new-c.json",
        "pairs": f"{pairs} -o new.csv --preferences-to new.jsonl",
        "pack": "pack in/answers.csv -o new.pack --shards 2 -q",
        "by shards": f"{packed} -o new.csv",
        "by shards, folder": f"{packed} -o new-parts --workers-to new-w.csv",
        "scratch": f"{packed} -o new.csv --scratch .",
        "scratch of another": f"{packed} -o new.csv --scratch old.scratch",
        "scratch, folder": f"{packed} -o new-parts --scratch .",
        "pool": f"{packed[:-5]}pool --processes 1 -o new.csv --scratch .",
        "compare": "compare in/answers.csv --methods majority-vote,one-coin -o new.csv -q",
        "evaluate": "evaluate in/truth.csv --truth in/truth.csv -o new.csv -q",
        "simulate": "simulate new-crowd --tasks 5 -q",
        "convert": "convert in/answers.csv new.jsonl -q",
        "audit": "audit in/answers.csv -o new-tables --prune-to new.csv --part spammers -q",
        "judges": "judges in/answers.csv --judges a -o new-tables -q",
        "report": "report in/answers.csv -o new.html --markdown new.md --tables -q",
        "train": f"{train} -o new-model --labels-to new.csv --workers-to new-w.csv",
        "predict": "predict in/model in/features.csv -o new.csv -q",
        "next": "next in/answers.csv --tasks in/tasks.csv -n 2 -o new.csv -q",
        "replay": "replay in/answers.csv --truth in/truth.csv --policies random --budgets 0.5 "
                  "--seeds 1 -m majority-vote -o new.csv --plot new.svg -q",
    }  # fmt: skip
    for name, words in clear.items():
        yield Case(f"new: {name}", words, refused=False)
    taken = {
        "labels": f"{fit} -o out.csv",
        "workers": f"{fit} -o new.csv --workers-to w.csv",
        "workers by the former name": f"{fit} -o new.csv --workers w.csv",
        "manifest": f"{fit} -o new.csv --workers-to w2.csv",
        "soft labels": f"{fit} --soft-labels-to soft.npy",
        "ids of soft labels": f"{fit} --soft-labels-to soft2.npy",
        "predictions": f"{fit} --predictions-to out.json --to-name image",
        "json": f"{fit} --json -o out.json",
        "saved model": f"{fit} --save model",
        "saved model of another": f"{fit} --save model3",
        "assignments": f"{boxes} --assignments out.csv",
        "coco": f"{boxes} --coco-to coco.json",
        "preferences": f"{pairs} --preferences-to p.jsonl",
        "pack": "pack in/answers.csv -o packs -q",
        "pack with progress": "pack in/answers.csv -o packs2 -q",
        "pack, a file": "pack in/answers.csv -o packs3 -q",
        "pack, locked": "pack in/answers.csv -o packs4 -q",
        "pack, here": "pack in/answers.csv -o . -q",
        "by shards": f"{packed} -o out.csv",
        "by shards, scratch": f"{packed} -o out.csv.gz --scratch output",
        "by shards, folder": f"{packed} -o parts",
        "by shards, beside": f"{packed} -o parts2",
        "compare": "compare in/answers.csv --methods majority-vote -o out.csv -q",
        "evaluate": "evaluate in/truth.csv --truth in/truth.csv -o out.csv -q",
        "simulate": "simulate crowd --tasks 5 -q",
        "simulate numbers": "simulate crowd --type numbers --tasks 5 -q",
        "convert": "convert in/answers.csv out.csv -q",
        "audit": "audit in/answers.csv -o tables --part spammers -q",
        "pruned": "audit in/answers.csv --prune-to out.csv --part spammers -q",
        "judges": "judges in/answers.csv --judges a -o tables -q",
        "report": "report in/answers.csv -q",
        "report, manifest": "report in/answers.csv -o page.html -q",
        "markdown": "report in/answers.csv -o new.html --markdown page.md -q",
        "train": f"{train} -o model",
        "train, restart": f"{train} -o model --restart",
        "train, refit": f"{train} -o model2 --valid-from-crowd --restart",
        "train, labels": f"{train} -o new-model --labels-to out.csv",
        "predict": "predict in/model in/features.csv -o out.csv -q",
        "next": "next in/answers.csv --tasks in/tasks.csv -o out.csv -q",
        "replay": "replay in/answers.csv --truth in/truth.csv -o out.csv -q",
        "plot": "replay in/answers.csv --truth in/truth.csv --plot plot.svg -q",
        **{f"loop {folder}": f"loop {folder} --tasks in/tasks.csv -q"
           for folder in ("campaign", "campaign2", "campaign3", "campaign4", "campaign5")},
        "pull": "label-studio pull http://127.0.0.1:9 --project 1 -o out.csv -q",
    }  # fmt: skip
    for name, words in taken.items():
        yield Case(f"taken: {name}", words, refused=True)


CASES = tuple(_cases())


def make_folder(folder: Path) -> None:
    """Write the inputs of all commands, then the files of the user."""
    _write_inputs(folder / "in")
    with contextlib.chdir(folder):  # in this process, so that the forks need not import torch
        for command in (
            "pack in/answers.csv -o in/crowd.pack --shards 2 -q",
            "train in/features.csv in/answers.csv -m crowd-layer --epochs 1 -o in/model -q",
        ):
            assert run(command.split()) == 0
    for name in FILES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(THESIS)


def _write_inputs(folder: Path) -> None:
    rng = random.Random(0)
    folder.mkdir(parents=True)
    tasks, workers = [f"t{i}" for i in range(12)], "abcde"
    truth = {task: "xy"[i % 2] for i, task in enumerate(tasks)}
    votes = [(t, w, truth[t] if rng.random() < 0.8 else "x") for t in tasks for w in workers]
    boxes = [(t, w, rng.randrange(3), 5, 20, 10, "car") for t in tasks[:3] for w in workers]
    pairs = [(f"i{a}", f"i{b}", w, rng.choice(["left", "right"]))
             for w in workers for a in range(4) for b in range(a)]  # fmt: skip
    for name, header, rows in (
        ("answers.csv", "task,worker,label", votes),
        ("truth.csv", "task,label", truth.items()),
        ("tasks.csv", "task", [(task,) for task in tasks]),
        ("features.csv", "task,f,g", [(t, rng.random(), rng.random()) for t in tasks]),
        ("boxes.csv", "task,worker,x,y,width,height,label", boxes),
        ("pairs.csv", "left,right,worker,label", pairs),
    ):
        lines = [header, *(",".join(map(str, row)) for row in rows), ""]
        (folder / name).write_text("\n".join(lines))


def run_case(case: Case, folder: Path) -> str:
    """Run a command in the folder and return what is wrong, "" if nothing; new files go again."""
    before = _content(folder)
    done = run_with(None, case.arguments, folder)
    after = _content(folder)
    lost = sorted(path for path, content in before.items() if after.get(path) != content)
    new = sorted(after.keys() - before.keys())
    _restore(folder, before, new)
    if lost:
        return f"changed or removed {', '.join(lost)}"
    if "Traceback" in done.err or done.code < 0:
        return f"exit {done.code}: {done.err.strip()[-300:]}"
    if case.refused:
        if done.code not in (2, 3):
            return f"exit {done.code}: {done.err.strip()[-300:]}"
        new = [path for path in new if not path.endswith("/loop.lock")]  # it is empty, and stays
        return f"refused, and left {', '.join(new)}" if new else ""
    if done.code not in (0, 4):
        return f"exit {done.code}: {done.err.strip()[-300:]}"
    left = [path for path in new if path.endswith((".tmp", ".scratch", ".lock")) or "/" in path]
    left = [path for path in left if not path.startswith("new")]
    return f"left {', '.join(left)}" if left else ""


def _content(folder: Path) -> dict[str, bytes | None]:
    """Return the bytes of every file below a folder, and None for folders."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def _restore(folder: Path, before: dict[str, bytes | None], new: list[str]) -> None:
    for name in reversed(new):
        path = folder / name
        path.rmdir() if path.is_dir() else path.unlink()
    for name, content in before.items():
        path = folder / name
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
        elif not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)
