"""Files of a user where outputs or progress would go: none is replaced or deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.attacks.attack import Attack

from wisecrowd.io.packing import pack

VOTES = "task,worker,label\n" + "".join(
    f"t{i},{w},{'ab'[i % 2]}\n" for i in range(6) for w in "xyz"
)
BOXES = "task,worker,x,y,width,height,label\n" + "".join(
    f"{i},{w},{k},0,10,10,cat\n" for i in range(3) for k, w in enumerate("xyz")
)
MINE = "task,worker\n1,x\n"
NOT_OURS = ("exists and was not written by wisecrowd", "--overwrite")
PACKED = ("aggregate", "p", "-m", "majority-vote", "--engine", "files", "-o", "y.csv")
SCRATCH = ("d/table/thesis.txt", "d/passes/thesis.txt", "d/output", "d/job-7")


def _make_pack(folder: Path) -> None:
    (folder / "a.csv").write_text(VOTES)
    pack(folder / "a.csv", folder / "p", shards=2)


def _keeps(*names: str, content: str = "mine") -> Callable[[Path, str], str]:
    def wrong(folder: Path, out: str) -> str:
        files = {name: folder / name for name in names}
        lost = [name for name, file in files.items() if not file.is_file()]
        here = files.keys() - set(lost)
        lost += [name for name in here if files[name].read_text() != content]
        return f"lost {', '.join(lost)}" if lost else ""

    return wrong


def _refused(name: str, command: str, taken: dict[str, str], *words: str) -> Attack:
    return Attack(
        name=f"files: {name}",
        arguments=tuple(command.split()),
        files={"a.csv": VOTES, "b.csv": BOXES, **taken},
        refused=words or NOT_OURS,
    )


ATTACKS = (
    Attack(
        name="files: a scratch folder with files of our names",
        arguments=(*PACKED, "--scratch", "d"),
        files=dict.fromkeys(SCRATCH, "mine"),
        make=_make_pack,
        wrong=_keeps(*SCRATCH),
    ),
    Attack(
        name="files: a folder where progress would go",
        arguments=PACKED,
        files={"y.csv.scratch/passes/thesis.txt": "mine"},
        make=_make_pack,
        refused=("y.csv.scratch", "was not made by wisecrowd", "--scratch"),
    ),
    _refused("a folder of shards", "pack a.csv -o q", {"q/shards/thesis.txt": "mine"},
             "not an unfinished pack"),
    _refused("progress of another program", "pack a.csv -o q",
             {"q/progress.json": '{"key": 1}', "q/buckets/thesis.txt": "mine"},
             "not an unfinished pack"),
    _refused("assignments that look like an input",
             "aggregate b.csv --type boxes --assignments assignments.csv",
             {"assignments.csv": MINE}),
    _refused("the former name with --overwrite",
             "aggregate b.csv --type boxes --assignments assignments.csv --overwrite",
             {"assignments.csv": MINE}, "--assignments-to"),
    _refused("workers that look like an input", "aggregate a.csv --workers-to w.csv",
             {"w.csv": MINE}),
    _refused("gold that looks like an input", "convert a.csv c.csv --gold g.csv", {"g.csv": MINE}),
    _refused("a report of another program", "report a.csv", {"report.html": "mine"}),
    _refused("an output that is an input", "aggregate a.csv -o a.csv --overwrite", {},
             "would overwrite"),
    _refused("a simulation over a data set", "simulate d --tasks 3",
             {"d/answers.csv": VOTES, "d/truth.csv": "mine"}, "would be lost"),
    _refused("an audit over tables", "audit a.csv -o d", {"d/thesis.csv": "mine"}, "would be lost"),
    Attack(
        name="files: --overwrite replaces what is named, and says so",
        arguments=("convert", "a.csv", "c.jsonl", "--overwrite"),
        files={"a.csv": VOTES, "c.jsonl": "mine", "c.jsonl.bak": "mine"},
        says=("it replaces one that wisecrowd did not write",),
        wrong=_keeps("c.jsonl.bak"),
    ),
    Attack(
        name="files: temporary files of others stay",
        arguments=("convert", "a.csv", "c.jsonl"),
        files={"a.csv": VOTES, ".wisecrowd-0123456789abcdef.tmp": "mine", "c.jsonl.tmp": "mine"},
        wrong=_keeps(".wisecrowd-0123456789abcdef.tmp", "c.jsonl.tmp"),
    ),
)  # fmt: skip
