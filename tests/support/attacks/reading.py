"""Files that are misread: one worker, one answer, several questions, numbers, zips."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path

from tests.support.attacks.attack import Attack

PEOPLE = ("ann", "bob", "cem")
N = 8


def _csv(header: str, lines: list[str], separator: str = ",") -> str:
    return "\n".join([header, *lines, ""]).replace(",", separator)


def _rows(form: str) -> list[str]:
    """Return a line per task and person; ``form`` may use i, j, w and s, a sign of two."""
    return [
        form.format(i=i, j=j, w=who, s="ab"[(i + (j == 2 and i % 4 == 0)) % 2], k=(i + j) % 2)
        for i in range(N)
        for j, who in enumerate(PEOPLE)
    ]


def _coco(key: str | None) -> str:
    annotations = [
        {"id": 3 * i + j, "image_id": i, "category_id": 1, "bbox": [10 * i, j, 50, 50]}
        | ({} if key is None else {key: who})
        for i in range(N)
        for j, who in enumerate(PEOPLE)
    ]
    images = [{"id": i, "file_name": f"{i}.jpg"} for i in range(N)]
    categories = [{"id": 1, "name": "car"}]
    return json.dumps({"images": images, "categories": categories, "annotations": annotations})


def _zip(name: str, text: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(name, text)
    return made.getvalue()


def _label_studio(workers: tuple[int, ...]) -> str:
    def annotation(i: int, worker: int) -> dict[str, object]:
        value = {"choices": ["ab"[i % 2]]}
        one = {"from_name": "mood", "to_name": "text", "type": "choices", "value": value}
        return {"id": 100 * i + worker, "completed_by": worker, "result": [one]}

    tasks = [
        {"id": i, "data": {"text": "?"}, "annotations": [annotation(i, w) for w in workers]}
        for i in range(12)
    ]
    return json.dumps(tasks)


def _grid(form: str) -> str:
    names = [
        form.format(w=worker, q=question)
        for worker in ("R1", "R2", "R3")
        for question in ("effusion", "nodule", "size_mm")
    ]
    lines = [f"c{i}," + ",".join(str((i * j) % 3 % 2) for j in range(9)) for i in range(12)]
    return _csv(",".join(["case", *names]), lines)


def _marks(cell: str) -> str:
    lines = [f"{i}," + ",".join(cell * ((i + j) % 3 == 0) for j in range(3)) for i in range(12)]
    return _csv("id,rater_1,rater_2,rater_3", lines)


def _values_of(column: str, wanted: list[float]) -> object:
    """Return a check of the first values in a column of ``o.csv``."""

    def wrong(folder: Path, out: str) -> str:
        with (folder / "o.csv").open(newline="") as file:
            found = [float(row[column]) for row in csv.DictReader(file)][: len(wanted)]
        return "" if found == wanted else f"{found} instead of {wanted}"

    return wrong


# One file per kind, whose worker column says the same everywhere and whose reader column does not.
_KINDS = {
    "labels": ("label", "{s}"),
    "ordered": ("label", "{j}"),
    "numbers": ("value", "{i}{j}"),
    "sets": ("labels", "{s}|c{k}"),
    "texts": ("text", "the words of task {i} {s}"),
    "pairs": ("left,right,label", "m{i},m{j}x,left"),
    "same": ("left,right,label", "m{i},n{j},same"),
    "rankings": ("ranking", "a > {s}{s} > c"),
    "boxes": ("x,y,width,height,label", "{i},{j},9,9,car"),
    "sequences": ("tags", "B-PER O"),
}
_RUN = ("aggregate", "a.csv", "-o", "o.csv")
_CROWD = _csv("task,worker,label", _rows("t{i},{w},{s}"))

_WORKERS = tuple(
    Attack(
        name=f"reading: one worker, {kind}",
        arguments=(*_RUN, "--type", kind, "--worker", "worker"),
        files={"a.csv": _csv(f"task,worker,reader,{names}", _rows(f"t{{i}},all,{{w}},{form}"))},
        refused=("by one worker, 'all'", "reader", "--accept one-worker"),
    )
    for kind, (names, form) in _KINDS.items()
)
_PER_TASK = tuple(
    Attack(
        name=f"reading: a worker per row, {kind}",
        arguments=(*_RUN, "--type", kind),
        files={
            "a.csv": _csv(
                f"task,worker,{names}",
                [line.replace("#", str(n)) for n, line in enumerate(2 * _rows(f"t#,w#,{form}"))],
            )
        },
        refused=("has a second task", "--accept worker-per-task"),
    )
    for kind, (names, form) in list(_KINDS.items())[:3]
)

ATTACKS = (
    *_WORKERS,
    *_PER_TASK,
    Attack(
        name="reading: coco with the worker under another key",
        arguments=("aggregate", "a.json", "-o", "o.csv"),
        files={"a.json": _coco("reader")},
        refused=("one worker", "'reader'", "annotator", "--accept one-worker"),
    ),
    Attack(
        name="reading: coco without workers",
        arguments=("convert", "a.json", "o.csv"),
        files={"a.json": _coco(None)},
        refused=("one worker", "annotator", "--accept one-worker"),
    ),
    Attack(
        name="reading: coco of one worker who is meant",
        arguments=("aggregate", "a.json", "-o", "o.csv", "--accept", "one-worker"),
        files={"a.json": _coco(None)},
        says=("one worker",),
    ),
    Attack(
        name="reading: coco with workers",
        arguments=("aggregate", "a.json", "-o", "o.csv"),
        files={"a.json": _coco("annotator")},
    ),
    *(
        Attack(
            name=f"reading: a wide sheet of {cell} and blanks as {kind}",
            arguments=(*_RUN, "--wide", "--type", kind),
            files={"a.csv": _marks(cell)},
            refused=(repr(cell), "blank", "--accept one-answer"),
        )
        for cell, kind in (("x", "labels"), ("x", "sets"), ("1", "numbers"), ("yes", "labels"))
    ),
    Attack(
        name="reading: a wide sheet with a gap or two",
        arguments=(*_RUN, "--wide"),
        files={"a.csv": _marks("x").replace("1,x", "1,y").replace(",,", ",y,")},
    ),
    *(
        Attack(
            name=f"reading: columns {form} as {kind}",
            arguments=(*_RUN, "--wide", "--type", kind),
            files={"a.csv": _grid(form)},
            refused=("3 workers to 3 questions", "--worker-columns", "effusion"),
        )
        for form, kind in (
            ("{w}_{q}", "sets"), ("{w}_{q}", "labels"), ("{w}_{q}", "numbers"),
            ("{q} ({w})", "labels"),
        )
    ),
    Attack(
        name="reading: one question of a sheet of several",
        arguments=(*_RUN, "--worker-columns", "R1_nodule,R2_nodule,R3_nodule"),
        files={"a.csv": _grid("{w}_{q}")},
    ),
    Attack(
        name="reading: workers of two groups",
        arguments=(*_RUN, "--wide"),
        files={
            "a.csv": _csv(
                "id,expert_1,expert_2,crowd_1,crowd_2",
                [f"{i},{'ab'[i % 2]},b,{'ba'[i % 2]},a" for i in range(12)],
            )
        },
    ),
    Attack(
        name="reading: one class in all rows",
        arguments=_RUN,
        files={"a.csv": _csv("task,worker,label,grade", _rows("t{i},{w},done,{s}"))},
        refused=("same answer, 'done'", "'grade'", "--accept one-answer"),
    ),
    Attack(
        name="reading: one class that is declared",
        arguments=(*_RUN, "--classes", "done,failed"),
        files={"a.csv": _csv("task,worker,label", _rows("t{i},{w},done"))},
    ),
    Attack(
        name="reading: a small file of one worker",
        arguments=_RUN,
        files={"a.csv": _csv("task,worker,label", [f"t{i},ann,{'ab'[i % 2]}" for i in range(6)])},
    ),
    Attack(
        name="reading: a poll of one task",
        arguments=_RUN,
        files={"a.csv": _csv("task,worker,label", [f"t,w{i},{'abb'[i % 3]}" for i in range(40)])},
    ),
    Attack(
        name="reading: one annotator in label studio",
        arguments=("aggregate", "a.json", "-o", "o.csv"),
        files={"a.json": _label_studio((7,))},
        says=("by one worker, '7'",),
    ),
    Attack(
        name="reading: next for a campaign of one worker so far",
        arguments=("next", "a.csv", "-n", "2", "-o", "o.csv", "--tasks", "tasks.csv"),
        files={
            "a.csv": _csv("task,worker,label", [f"t{i},ann,{'ab'[i % 2]}" for i in range(12)]),
            "tasks.csv": _csv("task,text", [f"t{i},?" for i in range(20)]),
        },
        says=("by one worker, 'ann'",),
    ),
    Attack(
        name="reading: a pack of one worker",
        arguments=("pack", "a.csv", "-o", "p"),
        files={"a.csv": _csv("task,worker,label", [f"t{i},ann,{'ab'[i % 2]}" for i in range(12)])},
        refused=("by one worker, 'ann'", "--accept one-worker"),
    ),
    # numbers
    Attack(
        name="reading: three currencies",
        arguments=(*_RUN, "--type", "numbers"),
        files={"a.csv": _csv("task,worker,value", _rows("t{i},{w},#{i}")).replace(
            "ann,#", "ann,$").replace("bob,#", "bob,€").replace("cem,#", "cem,£")},
        refused=("several currencies", "'$0' in row 1", "'€0' in row 2"),
    ),
    Attack(
        name="reading: one currency",
        arguments=(*_RUN, "--type", "numbers", "-m", "mean"),
        files={"a.csv": _csv("task,worker,value", _rows("t{i},{w},€{i}"))},
        wrong=_values_of("value", [0.0, 1.0, 2.0]),
    ),
    Attack(
        name="reading: decimal commas beside semicolons",
        arguments=(*_RUN, "--type", "numbers", "-m", "mean"),
        files={"a.csv": _csv("task,worker,value", _rows("t{i},{w},{i}#5"), ";").replace("#", ",")},
        says=("decimal commas",),
        wrong=_values_of("value", [0.5, 1.5, 2.5]),
    ),
    Attack(
        name="reading: decimal commas and points",
        arguments=(*_RUN, "--type", "numbers"),
        files={"a.csv": _csv("task,worker,value", [*_rows("t{i},{w},{i}#5"), "t9,ann,1.5"], ";")
               .replace("#", ",")},
        refused=("'value'", "with a comma and with a point"),
    ),
    # low
    *(
        Attack(
            name=f"reading: edges of weight {weight}",
            arguments=(*_RUN, "--graph", "g.csv"),
            files={
                "a.csv": _CROWD,
                "g.csv": _csv("task,neighbour,weight", [f"t{i},t7,{weight}" for i in range(7)]),
            },
            refused=("weight in row 1 of g.csv", weight),
        )
        for weight in ("1e308", "1e200", "inf", "-1")
    ),
    Attack(
        name="reading: edges of tiny weight",
        arguments=(*_RUN, "--graph", "g.csv"),
        files={
            "a.csv": _CROWD,
            "g.csv": _csv("task,neighbour,weight", [f"t{i},t{i + 1},1e-300" for i in range(7)]),
        },
    ),
    Attack(
        name="reading: a zip with a plain table",
        arguments=("aggregate", "a.zip", "-o", "o.csv"),
        files={"a.zip": _zip("crowd.csv", _CROWD)},
        refused=("crowd.csv", "'task', 'worker', 'label'", "unpack"),
    ),
    Attack(
        name="reading: a zip named csv",
        arguments=("aggregate", "a.zip", "-o", "o.csv", "--format", "csv"),
        files={"a.zip": _zip("crowd.csv", _CROWD)},
        refused=("zip archive", "unpack"),
    ),
    *(
        Attack(
            name=" ".join(["reading: ids 0, 1 and", third, *options]),
            arguments=("aggregate", "a.jsonl", "-o", "o.csv", *options),
            files={
                "a.jsonl": "".join(
                    f'{{"image": {i}, "reader": "r", "x": 1, "y": 2}}\n' for i in (0, 1, third)
                )
            },
            refused=("a.jsonl",),
        )
        for third in ("1e308", "1" + 30 * "0")
        for options in ((), ("--type", "boxes"))
    ),
    Attack(
        name="reading: an empty column of weights",
        arguments=_RUN,
        files={"a.csv": _csv("task,worker,label,weight", _rows("t{i},{w},{s},"))},
        says=("'weight' is empty",),
    ),
    Attack(
        name="reading: a column of weights with gaps",
        arguments=_RUN,
        files={"a.csv": _csv("task,worker,label,weight", [*_rows("t{i},{w},{s},"), "t9,ann,a,1"])},
        refused=("weight", "rows 1"),
    ),
    Attack(
        name="reading: features of 1e308",
        arguments=("train", "x.csv", "a.csv", "-o", "model"),
        files={
            "a.csv": _CROWD,
            "x.csv": _csv("task,f", [f"t{i},{'1e308' if i == 3 else i}" for i in range(N)]),
        },
        refused=("1e+308 in row 3, of 't3', column 0", "too large"),
    ),
)  # fmt: skip
