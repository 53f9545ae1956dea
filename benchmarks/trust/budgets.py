"""Crowds that are large in one dimension, for all kinds: what they cost, or how they are refused.

python -m benchmarks.trust.budgets            all of them
python -m benchmarks.trust.budgets texts      those whose name contains a word, with their costs
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.rows import Row

SECONDS = 60  # of processor time
GIGABYTES = 4.0
ROOM = 6 << 30  # bytes of addresses: libraries reserve some that they never use
ANSWERED, REFUSED = 0, 3


class Crowd(NamedTuple):
    """A file of one kind, and the commands and methods that are tried on it."""

    kind: str
    name: str
    lines: Callable[[], Iterator[str]]
    commands: tuple[str, ...] = ("aggregate", "audit", "report")
    methods: tuple[str, ...] = ()


class Cost(NamedTuple):
    """What a command took, and how it ended."""

    code: int
    seconds: float
    gigabytes: float
    said: str

    @property
    def fault(self) -> str:
        """What is wrong, "" if nothing is."""
        if self.code == -signal.SIGXCPU or self.seconds > SECONDS:
            return f"more than {SECONDS} s"
        if self.gigabytes > GIGABYTES:
            return f"{self.gigabytes:.1f} GB"
        if self.code not in (ANSWERED, REFUSED) or "Traceback" in self.said:
            return f"exit {self.code}"
        if "not enough memory" in self.said:
            return "refused late"
        return ""


# ------------------------------------------------------------------------------------------ crowds


def draws() -> np.random.Generator:
    return np.random.default_rng(0)


def table(header: str, *columns: object) -> Iterator[str]:
    """Yield the lines of a table with equally long columns."""
    yield header
    for row in zip(*columns, strict=True):  # type: ignore[call-overload]
        yield ",".join(map(str, row))


def labels(n_tasks: int, n_workers: int, n_classes: int) -> Iterator[str]:
    """Every worker labels every task, right seven times in ten."""
    rng, size = draws(), (n_tasks, n_workers)
    truth = rng.integers(n_classes, size=(n_tasks, 1))
    label = np.where(rng.random(size) < 0.7, truth, rng.integers(n_classes, size=size))
    task, worker = np.indices(size)
    return table("task,worker,label", task.flat, worker.flat, (f"c{k}" for k in label.flat))


def few_labels(n_tasks: int, n_workers: int, n_classes: int, each: int = 2) -> Iterator[str]:
    """Every task has a few labels."""
    rng, size = draws(), (n_tasks, each)
    truth = rng.integers(n_classes, size=(n_tasks, 1))
    label = np.where(rng.random(size) < 0.7, truth, rng.integers(n_classes, size=size))
    worker = (rng.integers(n_workers, size=(n_tasks, 1)) + np.arange(each)) % n_workers
    task = np.indices(size)[0]
    return table("task,worker,label", task.flat, worker.flat, (f"c{k}" for k in label.flat))


def grades(n_tasks: int, n_workers: int) -> Iterator[str]:
    rng, size = draws(), (n_tasks, n_workers)
    grade = np.clip(np.rint(rng.normal(3, 1, (n_tasks, 1)) + rng.normal(0, 0.7, size)), 1, 5)
    task, worker = np.indices(size)
    return table("task,worker,label", task.flat, worker.flat, grade.astype(int).flat)


def numbers(n_tasks: int, n_workers: int) -> Iterator[str]:
    rng, size = draws(), (n_tasks, n_workers)
    value = rng.normal(0, 9, (n_tasks, 1)) + rng.normal(0, 1, size)
    task, worker = np.indices(size)
    return table("task,worker,value", task.flat, worker.flat, (f"{v:.4f}" for v in value.flat))


def votes(n_items: int, n_workers: int, n_votes: int) -> Iterator[str]:
    rng = draws()
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    score = rng.normal(0, 2, n_items)
    won = rng.random(n_votes) < 1 / (1 + np.exp(score[right] - score[left]))
    worker = rng.integers(n_workers, size=n_votes)
    return table("worker,left,right,winner", worker, (f"i{a}" for a in left),
                 (f"i{a}" for a in right), np.where(won, "left", "right"))  # fmt: skip


def rankings(n_items: int, n_workers: int, length: int | None = None) -> Iterator[str]:
    rng = draws()
    score = rng.normal(0, 2, n_items)
    yield "worker,ranking"
    for worker in range(n_workers):
        some = rng.permutation(n_items)[: length or n_items]
        noisy = score[some] + rng.gumbel(size=len(some))
        yield f"w{worker}," + " > ".join(f"i{a}" for a in some[np.argsort(-noisy)])


def same(n_items: int, n_workers: int, n_votes: int, size: int) -> Iterator[str]:
    """Clusters of ``size`` items; votes inside of a cluster and between two in equal parts."""
    rng = draws()
    left = rng.integers(n_items, size=n_votes)
    inside = left // size * size + rng.integers(size, size=n_votes)
    right = np.where(rng.random(n_votes) < 0.5, inside, rng.integers(n_items, size=n_votes))
    left, right = left[left != right], right[left != right]
    said = (left // size == right // size) ^ (rng.random(len(left)) < 0.1)
    worker = rng.integers(n_workers, size=len(left))
    return table("worker,left,right,same", worker, (f"i{a}" for a in left),
                 (f"i{a}" for a in right), np.where(said, "same", "different"))  # fmt: skip


def sequences(n_tasks: int, n_workers: int, length: int, n_types: int) -> Iterator[str]:
    """Spans of one to three tokens, one worker in ten misses a span."""
    rng = draws()
    yield "task,worker,tags"
    for task in range(n_tasks):
        start = np.arange(0, length, 5)
        kind = np.arange(len(start)) + task * len(start)  # as many types as there is room for
        for worker in range(n_workers):
            tags = np.full(length, "O", dtype=object)
            for s, k in zip(start, kind % n_types, strict=True):
                if rng.random() < 0.9:
                    tags[s : s + 3] = [f"B-T{k}", f"I-T{k}", "O"][: length - s]
            yield f"{task},w{worker}," + " ".join(tags)


def sets(n_tasks: int, n_workers: int, n_classes: int, size: int) -> Iterator[str]:
    rng = draws()
    yield "task,worker,label"
    for task in range(n_tasks):
        truth = rng.integers(n_classes, size=size)
        for worker in range(n_workers):
            chosen = np.unique(np.append(truth[rng.random(size) < 0.9], rng.integers(n_classes)))
            yield f"{task},w{worker}," + " | ".join(f"c{k}" for k in chosen)


def boxes(n_images: int, n_workers: int, n_boxes: int, side: float = 1e4) -> Iterator[str]:
    rng = draws()
    yield "task,worker,x,y,width,height,label"
    for image in range(n_images):
        at = np.hstack([rng.uniform(0, side, (n_boxes, 2)), rng.uniform(30, 90, (n_boxes, 2))])
        for worker in range(n_workers):
            for x, y, w, h in np.maximum(at + rng.normal(0, 2, at.shape), 1).round(1).tolist():
                yield f"{image},w{worker},{x},{y},{w},{h},car"


def masks(n_images: int, n_workers: int, side: int, blobs: int = 1) -> Iterator[str]:
    """Rectangles, as run lengths of columns."""
    rng = draws()
    yield "task\tworker\tmask"
    for image in range(n_images):
        for worker in range(n_workers):
            runs = _rectangles(side, blobs, rng)
            counts = ",".join(map(str, runs))
            yield f'{image}\tw{worker}\t{{"size": [{side}, {side}], "counts": [{counts}]}}'


def _rectangles(side: int, blobs: int, rng: np.random.Generator) -> list[int]:
    """Return run lengths of columns: in every column of the middle half, ``blobs`` stripes."""
    columns = np.arange(side // 4, side - side // 4)
    height = side // (2 * blobs)
    low = np.arange(blobs) * 2 * height + rng.integers(0, height // 2 + 1)
    start = (columns[:, None] * side + low).ravel()
    ends = np.column_stack([start, start + height]).ravel()
    return np.diff(ends, prepend=0, append=side * side).tolist()


def texts(n_tasks: int, n_workers: int, n_words: int) -> Iterator[str]:
    """Every worker changes, leaves out or adds a word in twenty."""
    rng = draws()
    yield "task,worker,text"
    for task in range(n_tasks):
        truth = rng.integers(5000, size=n_words)
        for worker in range(n_workers):
            words = np.where(rng.random(n_words) < 0.03, rng.integers(5000, size=n_words), truth)
            words = words[rng.random(n_words) > 0.02]
            yield f"{task},w{worker}," + " ".join(f"v{k}" for k in words)


# ------------------------------------------------------------------------------------------- cases

OUTPUTS = {"aggregate": "o.csv", "audit": "audit", "report": "r.html"}
FIT = ("aggregate",)  # audits and reports fit some tens of times: in proportion
CROWDS = (
    Crowd("labels", "one task of 20000", lambda: labels(1, 20_000, 3), ("aggregate", "audit")),
    Crowd("labels", "one worker of 20000", lambda: labels(20_000, 1, 3), FIT),
    Crowd("labels", "100000 tasks of 2", lambda: few_labels(100_000, 500, 3), FIT),
    Crowd("labels", "5000 classes", lambda: few_labels(5000, 50, 5000, 4)),
    Crowd("ordered", "one task of 20000", lambda: grades(1, 20_000), FIT),
    Crowd("numbers", "one task of 20000", lambda: numbers(1, 20_000)),
    Crowd("numbers", "50000 tasks of 2", lambda: numbers(50_000, 2), FIT),
    Crowd("pairs", "20000 items", lambda: votes(20_000, 50, 60_000), FIT),
    Crowd("pairs", "20000 workers", lambda: votes(100, 20_000, 40_000), FIT),
    Crowd("rankings", "3 of 1000", lambda: rankings(1000, 3), FIT),
    Crowd("rankings", "3 of 3000", lambda: rankings(3000, 3), FIT),
    Crowd("rankings", "3 of 8000", lambda: rankings(8000, 3), FIT),
    Crowd("rankings", "20000 of 5", lambda: rankings(50, 20_000, 5), FIT),
    Crowd("same", "clusters of 2000", lambda: same(4000, 20, 8000, 2000), FIT),
    Crowd("same", "3000 items", lambda: same(3000, 20, 9000, 5), FIT),
    Crowd("sequences", "1000 types", lambda: sequences(20, 3, 300, 1000)),
    Crowd("sequences", "200 types", lambda: sequences(20, 3, 50, 200), FIT),
    Crowd("sequences", "one of 50000 tokens", lambda: sequences(1, 3, 50_000, 3), FIT),
    Crowd("sequences", "one task of 1000", lambda: sequences(1, 1000, 20, 3)),
    Crowd("sets", "5000 classes", lambda: sets(300, 3, 5000, 5), FIT),
    Crowd("sets", "sets of 1000", lambda: sets(3, 3, 2000, 1000), FIT),
    Crowd("sets", "one task of 5000", lambda: sets(1, 5000, 20, 3), FIT),
    Crowd("boxes", "3 x 2000 in one image", lambda: boxes(1, 3, 2000), methods=("box-em",)),
    Crowd("boxes", "3 x 2000 in a small image", lambda: boxes(1, 3, 2000, 500.0), FIT),
    Crowd("boxes", "one image by 1000", lambda: boxes(1, 1000, 3), FIT),
    Crowd("masks", "10000 x 10000", lambda: masks(1, 3, 10_000)),
    Crowd("masks", "one image by 1000", lambda: masks(1, 1000, 100), FIT),
    Crowd("texts", "3 of 20000 words", lambda: texts(1, 3, 20_000), ("aggregate", "audit")),
    Crowd("texts", "one task of 1000", lambda: texts(1, 1000, 20), FIT),
)


def measure(arguments: list[str], folder: Path) -> Cost:
    """Run a command in a fork with limits, and return what it took."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os._exit(_run_limited(arguments, folder))
    _, status, used = os.wait4(child, 0)
    said = (folder / "said.txt").read_text(errors="replace")
    code = os.waitstatus_to_exitcode(status)
    seconds = used.ru_utime + used.ru_stime
    return Cost(code, seconds, used.ru_maxrss * 1024 / 1e9, said)


def _run_limited(arguments: list[str], folder: Path) -> int:
    from wisecrowd.cli import main

    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + 1, SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    os.chdir(folder)
    said = os.open("said.txt", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.dup2(said, 1)
    os.dup2(said, 2)
    try:
        code = main.run(arguments)
    except BaseException as error:  # what main does not catch is a traceback
        os.write(2, f"Traceback: {error!r}".encode())
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return code


def arguments_of(crowd: Crowd) -> Iterator[list[str]]:
    """Yield the commands for a file in the folder."""
    file = "crowd.tsv" if crowd.kind == "masks" else "crowd.csv"
    given = [file, "--type", crowd.kind, "-q"]
    if crowd.kind == "ordered":
        given[1:3] = ["--scale", "1..5"]
    for command in crowd.commands:
        yield [command, *given, "-o", f"OUT/{OUTPUTS[command]}"]
    for method in crowd.methods:
        yield ["aggregate", *given, "-m", method, "-o", "OUT/o.csv"]


def costs(words: tuple[str, ...]) -> Iterator[Cost]:
    """Yield what each command takes, and tell those that are over budget or asked for by name."""
    for crowd in CROWDS:
        name = f"{crowd.kind}: {crowd.name}"
        if not all(word in name for word in words):
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            file = folder / ("crowd.tsv" if crowd.kind == "masks" else "crowd.csv")
            file.write_text("\n".join(crowd.lines()) + "\n")
            for arguments in arguments_of(crowd):
                with tempfile.TemporaryDirectory(dir=folder) as output:
                    cost = measure([part.replace("OUT", output) for part in arguments], folder)
                if words or cost.fault:
                    method = arguments[-3] if "-m" in arguments else ""
                    used = f"{cost.seconds:.1f} s, {cost.gigabytes:.1f} GB"
                    last = cost.said.strip().splitlines()[-1:] if cost.code else ""
                    print(f"{name}, {arguments[0]} {method}: {used}", cost.fault, *last,
                          file=sys.stderr, flush=True)  # fmt: skip
                yield cost


def run(words: tuple[str, ...] = ()) -> list[Row]:
    found = list(costs(words))
    refused = sum(cost.code == REFUSED for cost in found)
    faults = sum(bool(cost.fault) for cost in found)
    slowest = max(cost.seconds for cost in found)
    largest = max(cost.gigabytes for cost in found)
    return [
        Row(f"crowds large in one dimension: {len(found)} commands", "", f"{refused} refused"),
        Row("over budget", "0", str(faults), faults == 0),
        Row("slowest command", f"{SECONDS} s", f"{slowest:.0f} s", slowest <= SECONDS),
        Row("largest memory", f"{GIGABYTES} GB", f"{largest:.1f} GB", largest <= GIGABYTES),
    ]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run(tuple(sys.argv[1:]))))
