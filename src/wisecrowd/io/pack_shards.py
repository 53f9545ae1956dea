"""Second pass of packing: the buckets of a shard become sorted arrays."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.duplicates import arrange, different_pairs, repeated_pairs
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.packed_sort import sort_annotations
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.io.id_columns import hash_ids
from wisecrowd.io.pack_buckets import read_bucket
from wisecrowd.io.pack_payloads import decided
from wisecrowd.kinds.classes.evidence import require_classes
from wisecrowd.kinds.classes.packed.patterns import Patterns, find_patterns
from wisecrowd.kinds.pairs.outcomes import LEFT
from wisecrowd.packs.kind import PackedKind, packed_kind
from wisecrowd.packs.pack import SHARDS, facts_of, write_array, write_ids
from wisecrowd.packs.summary import TASKS, TEXT, ShardInfo

SAMPLE = 100_000  # tasks of the first shard that decide whether rows repeat
FEW_ROWS = 0.2  # share of distinct rows in the sample below which equal tasks share a row
LEAST_SAMPLE = 1000  # tasks; smaller packs do not gain from it


class PairPlan(NamedTuple):
    """Final codes of items, and what outcomes mean; see :mod:`wisecrowd.io.pack_payloads`."""

    items: NDArray[Any]
    item_code: NDArray[np.int32]
    meaning: NDArray[np.int32]
    winner: NDArray[np.int32]


@dataclass(frozen=True)
class ShardPlan:
    """What all shards of a pack have in common.

    Attributes
    ----------
    folder, buckets : Path
        The pack, and the buckets of the first pass.
    n_buckets, n_shards : int
    worker_code, label_code : (n + 1,) int32
        Final codes of the codes of the first pass; the last entry is for -1.
    workers, classes : vocabularies
    duplicates : str
    check_classes : bool
        Whether labels that do not look like classes are refused.
    gold : (pyarrow array of tasks, (n,) codes or numbers) or None
    task_type : "text" or "integer"
    columns : mapping of name to dtype
        The optional columns, weight and timestamp, and the payload of numbers and pairs.
    kind : str
    pairs : PairPlan, optional
        What codes of items and outcomes mean.
    """

    folder: Path
    buckets: Path
    n_buckets: int
    n_shards: int
    worker_code: NDArray[np.int32]
    label_code: NDArray[np.int32]
    workers: NDArray[Any]
    classes: NDArray[Any]
    duplicates: str
    check_classes: bool
    gold: tuple[Any, NDArray[Any]] | None
    task_type: str
    columns: dict[str, str]
    kind: str
    pairs: PairPlan | None = None

    @property
    def n_labels(self) -> int:
        """Number of cells per worker: the classes, or one."""
        return len(self.classes) if self.packed.of_classes else 1

    @property
    def packed(self) -> PackedKind:
        """What packs hold of this kind."""
        return packed_kind(self.kind)


@dataclass
class ShardSums:
    """Sums over the annotations of a shard, which add up to those of the pack."""

    info: dict[str, Any]
    n_labelled: int = 0
    n_telling: int = 0
    n_gold: int = 0
    n_pairs: int = 0
    n_different: int = 0
    n_dropped: int = 0
    class_totals: list[float] = field(default_factory=list)
    labels_per_task: list[int] = field(default_factory=list)  # fewest and most, if there are tasks
    value_range: list[float] = field(default_factory=list)  # least and largest number, if any
    outcome_totals: list[float] = field(default_factory=list)


class _Piece(NamedTuple):
    """The sorted annotations of one bucket; tasks are in the order of their hashes."""

    tasks: Any
    task: NDArray[np.int32]
    worker: NDArray[np.int32]
    label: NDArray[np.int32]
    extra: dict[str, NDArray[Any]]
    counts: tuple[int, int, int]


def write_shard(
    plan: ShardPlan, number: int, use_patterns: bool | None, report: Callable[[str], None]
) -> tuple[ShardSums, bool | None, NDArray[np.float64]]:
    """Write a shard; return its sums, whether patterns are in use, and the weight of each worker.

    ``use_patterns`` of None leaves the decision to the first shard.
    """
    report(f"shard {number + 1} of {plan.n_shards}")
    joined = _join([piece for piece in _pieces_of(plan, number) if piece is not None], plan)
    indptr = np.zeros(len(joined.tasks) + 1, dtype=np.int64)
    np.cumsum(np.bincount(joined.task, minlength=len(joined.tasks)), out=indptr[1:])
    if plan.check_classes and plan.packed.of_classes and number == 0:
        require_classes(joined.task, joined.label, plan.classes, Places({}))
    gold = _gold_of(plan, joined.tasks)
    cell = joined.worker.astype(np.int64) * plan.n_labels + joined.label
    if use_patterns is None and number == 0:
        use_patterns = not joined.extra and plan.gold is None and _repeats(indptr, cell)
    patterns = find_patterns(indptr, cell) if use_patterns else None
    name = f"{number:04d}"
    folder = plan.folder / SHARDS / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    n_rows = _write_arrays(folder, plan, joined, indptr, cell, gold, patterns)
    files = {file.name: facts_of(file) for file in sorted(folder.iterdir())}
    weight = joined.extra.get("weight")
    local = int(np.count_nonzero(np.bincount(joined.worker, minlength=len(plan.workers))))
    info = ShardInfo(name, len(joined.tasks), n_rows, len(joined.task), local, files)
    sums = _sums(plan, joined, indptr, gold, weight, info)
    totals = np.bincount(joined.worker, weight, len(plan.workers)).astype(np.float64)
    return sums, use_patterns, totals


def _pieces_of(plan: ShardPlan, number: int) -> list[_Piece | None]:
    if plan.n_buckets >= plan.n_shards:
        each = plan.n_buckets // plan.n_shards
        return [_sorted_bucket(plan, b, None) for b in range(number * each, (number + 1) * each)]
    return [_sorted_bucket(plan, number * plan.n_buckets // plan.n_shards, number)]


def _sorted_bucket(plan: ShardPlan, bucket: int, shard: int | None) -> _Piece | None:
    """Return the sorted annotations of a bucket; with ``shard`` those of one shard of several."""
    import pyarrow as pa

    table = read_bucket(plan.buckets / f"{bucket}.arrow")
    if table is None:
        return None
    column = table.column("task").combine_chunks()
    encoded = (
        pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    ).dictionary_encode()
    distinct, hashes = encoded.dictionary, hash_ids(encoded.dictionary)
    _refuse_blank(distinct)
    order = _hash_order(hashes, distinct)
    if shard is not None:
        mine = (hashes >> np.uint64(64 - (plan.n_shards - 1).bit_length())) == np.uint64(shard)
        order = order[mine[order]]
    rank = np.full(len(distinct), -1, dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    task = rank[encoded.indices.to_numpy()]
    del encoded, column
    worker = plan.worker_code[table.column("worker").to_numpy()]
    extra = {
        name: np.asarray(table.column(name).to_numpy())
        for name in ("weight", "timestamp", *plan.packed.payload)
        if name in table.column_names
    }
    label = np.zeros(len(task), np.int32)
    if plan.packed.of_classes:
        label = plan.label_code[table.column("label").to_numpy()]
    elif plan.pairs is not None:
        extra |= _votes(extra, plan.pairs)
    counted = (label >= 0) & (task >= 0)
    if not counted.all():
        task, worker, label = task[counted], worker[counted], label[counted]
        extra = {name: values[counted] for name, values in extra.items()}
    tasks = distinct.take(pa.array(order))
    return _without_repeats(plan, tasks, (task, worker, label), extra)


def _votes(columns: dict[str, NDArray[Any]], plan: PairPlan) -> dict[str, NDArray[Any]]:
    """Return left and right items in final codes, and outcomes."""
    left, right = (plan.item_code[columns[side]] for side in ("left", "right"))
    if "outcome" not in columns:  # left items are the chosen ones
        outcome = np.full(len(left), LEFT, np.int8)
    else:
        outcome = decided(columns["outcome"], left, right, plan.meaning, plan.winner)
    return {"left": left, "right": right, "outcome": outcome}


def _refuse_blank(distinct: Any) -> None:
    import pyarrow.compute as pc

    if str(distinct.type) == "large_string":
        blank = pc.equal(pc.utf8_trim_whitespace(distinct), "")
        if pc.any(blank).as_py():
            raise DataError(
                "A task id consists of white space; fill in the task or remove the row."
            )


def _hash_order(hashes: NDArray[np.uint64], distinct: Any) -> NDArray[np.int64]:
    """Return the order of ids by hash; ids with the same hash are ordered by themselves."""
    order = np.argsort(hashes, kind="stable")
    ranked = hashes[order]
    if (ranked[1:] == ranked[:-1]).any():
        ids = distinct.to_pylist()
        order = np.array(sorted(range(len(ids)), key=lambda i: (int(hashes[i]), ids[i])))
    return order


def _without_repeats(
    plan: ShardPlan, tasks: Any, codes: tuple[Any, Any, Any], extra: dict[str, NDArray[Any]]
) -> _Piece:
    """Sort annotations by (task, worker) and apply the policy for repeated pairs."""
    sizes = (len(tasks), len(plan.workers), plan.n_labels)
    ordered = sort_annotations(*codes, sizes)
    if extra and ordered.key is not None:
        extra = {name: values[ordered.rows] for name, values in extra.items()}
    task, worker, label = ordered.task, ordered.worker, ordered.label
    same = repeated_pairs(task, worker)
    if not plan.packed.of_classes and same.any():  # repeats must not follow the order of rows
        label, n_labels = _answer_codes(extra, plan)
        sizes = (len(tasks), len(plan.workers), n_labels)
    n_pairs = len(task) - int(same.sum())
    if not same.any():
        return _Piece(tasks, task, worker, label, extra, (n_pairs, 0, 0))
    if plan.duplicates == "error":
        at = int(np.argmax(same))
        raise DataError(
            f"Worker {plan.workers[worker[at]]!r} labelled task {tasks[int(task[at])].as_py()!r} "
            f"twice; remove one of them, or choose {option('duplicates', 'last')} or "
            f"{option('duplicates', 'keep')}."
        )
    different = different_pairs(same, label)
    all_count = plan.duplicates == "keep" or (plan.duplicates == "auto" and plan.pairs is not None)
    policy = "keep" if all_count else "last"
    kept = arrange((task, worker, label), sizes, None, extra, policy, Places({}))
    dropped = len(task) - len(kept.task)
    counts = (n_pairs, 0 if all_count else different, dropped)
    label = kept.label if plan.packed.of_classes else np.zeros_like(kept.label)
    return _Piece(tasks, kept.task, kept.worker, label, kept.extra, counts)


def _answer_codes(extra: dict[str, NDArray[Any]], plan: ShardPlan) -> tuple[NDArray[np.int32], int]:
    """Return codes of numbers or votes, and how many there are."""
    if plan.pairs is None:
        answer = extra["value"]
    else:
        answer = (extra["left"].astype(np.int64) * len(plan.pairs.items) + extra["right"]) * 3
        answer = answer + extra["outcome"]
    found, code = np.unique(answer, return_inverse=True)
    return code.astype(np.int32), len(found)


def _join(pieces: list[_Piece], plan: ShardPlan) -> _Piece:
    import pyarrow as pa

    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        nothing = np.empty(0, np.int32)
        ids = pa.array([], pa.large_string() if plan.task_type == TEXT else pa.int64())
        extra = {name: np.empty(0, dtype) for name, dtype in plan.columns.items()}
        return _Piece(ids, nothing, nothing, nothing, extra, (0, 0, 0))
    shift = np.cumsum([0, *(len(piece.tasks) for piece in pieces)])
    task = np.concatenate([p.task + np.int32(s) for p, s in zip(pieces, shift, strict=False)])
    extra = {
        name: np.concatenate([piece.extra[name] for piece in pieces]) for name in pieces[0].extra
    }
    counts = np.sum([piece.counts for piece in pieces], axis=0).tolist()
    return _Piece(
        pa.concat_arrays([piece.tasks for piece in pieces]),
        task,
        np.concatenate([piece.worker for piece in pieces]),
        np.concatenate([piece.label for piece in pieces]),
        extra,
        (counts[0], counts[1], counts[2]),
    )


def _repeats(indptr: NDArray[np.int64], cell: NDArray[np.int64]) -> bool:
    """Return whether a sample of tasks has few distinct rows."""
    n = min(SAMPLE, len(indptr) - 1)
    if n < LEAST_SAMPLE:
        return False
    found = find_patterns(indptr[: n + 1], cell[: indptr[n]])
    return len(found.repeat) < FEW_ROWS * n


def _gold_of(plan: ShardPlan, tasks: Any) -> NDArray[Any] | None:
    """Return the known class or number of each task of a shard, -1 or NaN where there is none."""
    import pyarrow.compute as pc

    if plan.gold is None:
        return None
    ids, codes = plan.gold
    place = pc.index_in(tasks, value_set=ids).fill_null(-1).to_numpy()
    nothing = np.array(-1 if plan.packed.of_classes else np.nan, codes.dtype)
    return np.asarray(np.append(codes, nothing)[place])


def _write_arrays(
    folder: Path,
    plan: ShardPlan,
    joined: _Piece,
    indptr: NDArray[np.int64],
    cell: NDArray[np.int64],
    gold: NDArray[Any] | None,
    patterns: Patterns | None,
) -> int:
    """Write the files of a shard and return its number of rows."""
    K = plan.n_labels
    present = np.bincount(joined.worker, minlength=len(plan.workers)) > 0
    local_code = np.cumsum(present) - 1
    small = int(present.sum()) * K <= np.iinfo(np.int32).max
    local = local_code[cell // K] * K + cell % K
    n_rows = len(indptr) - 1
    if patterns is not None:
        size = np.diff(indptr)[patterns.first]
        start = indptr[patterns.first]
        indptr = np.append(0, np.cumsum(size)).astype(np.int64)
        local = local[np.repeat(start - indptr[:-1], size) + np.arange(indptr[-1])]
        write_array(folder / "pattern.npy", patterns.pattern)
        write_array(folder / "repeat.npy", patterns.repeat.astype(np.float64))
        n_rows = len(patterns.first)
    write_ids(folder / TASKS, joined.tasks)
    write_array(folder / "indptr.npy", indptr)
    write_array(folder / "cell.npy", local.astype(np.int32 if small else np.int64))
    write_array(folder / "workers.npy", np.flatnonzero(present).astype(np.int32))
    for name, values in joined.extra.items():
        write_array(folder / f"{name}.npy", values)
    if gold is not None:
        write_array(folder / "gold.npy", gold)
    return n_rows


def _sums(
    plan: ShardPlan,
    joined: _Piece,
    indptr: NDArray[np.int64],
    gold: NDArray[Any] | None,
    weight: NDArray[np.float64] | None,
    info: ShardInfo,
) -> ShardSums:
    task, worker = joined.task, joined.worker
    if weight is not None and not weight.all():
        counted = weight > 0
        task, worker = task[counted], worker[counted]
    apart = (task[1:] == task[:-1]) & (worker[1:] != worker[:-1])
    telling = np.zeros(len(joined.tasks), dtype=bool)
    telling[task[1:][apart]] = True
    size = np.diff(indptr)
    labelled = size > 0
    known = np.zeros(len(labelled), dtype=bool)
    if gold is not None:
        known = plan.packed.known(gold)
    totals = np.bincount(joined.label, weight, len(plan.classes))[: len(plan.classes)]
    value, outcome = joined.extra.get("value"), joined.extra.get("outcome")
    return ShardSums(
        info=vars(info),
        n_labelled=int(labelled.sum()),
        n_telling=int((telling | (known & labelled)).sum()),
        n_gold=int(known.sum()),
        n_pairs=joined.counts[0],
        n_different=joined.counts[1],
        n_dropped=joined.counts[2],
        class_totals=totals.astype(np.float64).tolist(),
        labels_per_task=[int(size.min()), int(size.max())] if len(size) else [],
        value_range=[] if value is None or not len(value) else [value.min(), value.max()],
        outcome_totals=[] if outcome is None else np.bincount(outcome, weight, 3).tolist(),
    )
