"""First pass of packing: annotations of any files, distributed over buckets of tasks.

Rows of a task go to one bucket, chosen by the highest bits of the hash of its id, in their order.
Workers and labels become codes in the order of their appearance; the second pass sorts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import NOBODY
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.packed_sort import stable_order
from wisecrowd.core.kinds import LABELS
from wisecrowd.core.messages.descriptions import Places, describe_rows
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.value_columns import as_timestamps, as_weights
from wisecrowd.io.formats import Request
from wisecrowd.io.id_columns import GrowingCodes, PlainIds, hash_ids, missing_rows
from wisecrowd.io.inventory import ALL, HUMAN, MODEL, Selection
from wisecrowd.io.pack_payloads import PairCoding, number_columns, pair_keys
from wisecrowd.io.pack_refusals import Refused, without_refused
from wisecrowd.io.sources import Source
from wisecrowd.io.tables import read_batches
from wisecrowd.packs.kind import PackedKind, is_packable, packed_kind

ROWS = 1 << 19  # rows that are distributed at once
_NOT_KEPT = ("duration", "cost", "question")


@dataclass
class Coding:
    """What the first pass knows of all rows so far; it is saved after every input file.

    Attributes
    ----------
    workers, labels : GrowingCodes
        Codes by first appearance.
    task_type, worker_type, label_type, time_type : str or None
        The type of each column, the same in all files.
    columns : list of str or None
        The optional columns, the same in all files.
    n_rows, n_abstentions : int
    kinds : set of str
        Kinds of workers.
    kind : str or None
        The kind of labels.
    pairs : PairCoding
        Items and outcomes, if they are pairs.
    refused : mapping of reason to count and examples
        Rows that were left out.
    """

    workers: GrowingCodes = field(default_factory=GrowingCodes)
    labels: GrowingCodes = field(default_factory=GrowingCodes)
    task_type: str | None = None
    worker_type: str | None = None
    label_type: str | None = None
    columns: list[str] | None = None
    time_type: str | None = None
    n_rows: int = 0
    n_abstentions: int = 0
    kinds: set[str] = field(default_factory=set)
    kind: str | None = None
    pairs: PairCoding = field(default_factory=PairCoding)
    refused: Refused = field(default_factory=dict)

    @property
    def packed(self) -> PackedKind:
        """What packs hold of this kind."""
        return packed_kind(self.kind or LABELS)


class Distributor:
    """Reads files and appends their rows to the buckets.

    Parameters
    ----------
    folder : Path
        Where the buckets are; bucket ``b`` is the file ``b.arrow``, a sequence of Arrow streams.
    n_buckets : int
        A power of two.
    request : Request
        What is asked from the files.
    format : str
    abstain : sequence of labels
    declared : bool
        Whether every label is declared to be a class.
    coding : Coding
        Changed by every file.
    max_refused : int
        Rows that may be left out because they cannot be read.
    check : callable
        Called after every batch of rows.
    """

    def __init__(
        self,
        folder: Path,
        n_buckets: int,
        request: Request,
        format: str,
        abstain: tuple[Any, ...],
        declared: bool,
        coding: Coding,
        max_refused: int = 0,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.folder, self.n_buckets = folder, n_buckets
        self.request, self.format = request, format
        self.abstain, self.declared, self.coding = abstain, declared, coding
        self.max_refused = max_refused
        self.check = check
        self._tasks, self._workers = PlainIds("task"), PlainIds("worker")
        self._tasks.type, self._workers.type = coding.task_type, coding.worker_type

    def add(self, source: Source) -> None:
        """Distribute the rows of one file."""
        with ExitStack() as stack:
            files = [
                stack.enter_context((self.folder / f"{b}.arrow").open("ab"))
                for b in range(self.n_buckets)
            ]
            writers: list[Any] = [None] * self.n_buckets
            first_row = 0
            for piece in _pieces(source, self.format, self.request, self.check):
                n_rows = len(next(iter(piece.values())))
                self._distribute(piece, source.name, first_row, files, writers)
                self.check()
                first_row += n_rows
            for writer in writers:
                if writer is not None:
                    writer.close()
        self.coding.n_rows += first_row

    def _distribute(
        self,
        piece: dict[str, Any],
        source: str,
        first_row: int,
        files: list[Any],
        writers: list[Any],
    ) -> None:
        import pyarrow as pa

        self._require_columns(piece, source)
        if self.max_refused:
            place = (source, first_row)
            piece = without_refused(
                piece, self.coding.refused, self.max_refused, place, self.abstain
            )
        places = Places(dict(self.request.found), _rows_after(first_row, source))
        payload = self._payload(piece, places, source, first_row)
        piece = self._with_ids(piece, payload)
        tasks = self._complete(self._tasks.take(piece["task"], source), "task", source, first_row)
        workers = self._complete(
            self._workers.take(piece["worker"], source), "worker", source, first_row
        )
        self.coding.task_type, self.coding.worker_type = self._tasks.type, self._workers.type
        columns = {"task": tasks, "worker": pa.array(self.coding.workers.add(workers)), **payload}
        if "weight" in piece:
            columns["weight"] = pa.array(as_weights(piece["weight"], places))
        if "timestamp" in piece:
            columns["timestamp"] = pa.array(self._times(piece["timestamp"], places, source))
        kept = self._selected(workers, piece.get("worker_kind"))
        batch = pa.record_batch(columns)
        bucket = hash_ids(tasks) >> np.uint64(64 - (self.n_buckets - 1).bit_length())
        if kept is not None:
            batch, bucket = batch.filter(pa.array(kept)), bucket[kept]
        order = stable_order(bucket.astype(np.int32), self.n_buckets)
        batch = batch.take(pa.array(order))
        ends = np.cumsum(np.bincount(bucket.astype(np.int64), minlength=self.n_buckets)).tolist()
        for b, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if end > start:
                if writers[b] is None:
                    writers[b] = pa.ipc.new_stream(files[b], batch.schema)
                writers[b].write_batch(batch.slice(start, end - start))

    def _payload(
        self, piece: dict[str, Any], places: Places, source: str, first_row: int
    ) -> dict[str, Any]:
        """Return the columns that hold the answers, as codes or numbers."""
        import pyarrow as pa

        if self.coding.packed.of_classes:
            return {"label": pa.array(self._labels(piece["label"], source, first_row))}
        if self.coding.packed.about_items:
            return self.coding.pairs.columns(piece, places, source)
        return number_columns(piece, places)

    def _with_ids(self, piece: dict[str, Any], payload: dict[str, Any]) -> dict[str, Any]:
        """Return the piece with the tasks and workers that pairs may lack."""
        import pyarrow as pa

        if not self.coding.packed.about_items:
            return piece
        left, right = (payload[side].to_numpy() for side in ("left", "right"))
        if "task" not in piece:
            piece = {**piece, "task": pair_keys(left, right, self.coding.pairs.items.code_of)}
        if "worker" not in piece:
            piece = {**piece, "worker": pa.repeat(pa.scalar(NOBODY, pa.large_string()), len(left))}
        return piece

    def _require_columns(self, piece: dict[str, Any], source: str) -> None:
        """Refuse files without workers, of another kind, or whose optional columns differ."""
        require_packable(self.request.kind.name, source)
        packed = packed_kind(self.request.kind.name)
        kind = packed.name
        if self.coding.kind not in (None, kind):
            raise DataError(
                f"{source} holds {kind} and earlier files {self.coding.kind}; pack them apart."
            )
        self.coding.kind = kind
        if "worker" not in piece and not packed.about_items:
            raise DataError(f"{source} has no column of workers; name it with "
                            f"{option('worker', 'COLUMN')}.")  # fmt: skip
        if "question" in piece and packed.one_question:
            raise DataError(
                f"{source} has a column of questions, and a pack holds the numbers of one "
                "question; write one file per question, without that column."
            )
        optional = (
            "timestamp",
            "weight",
            *(("task", "worker", "outcome") if packed.about_items else ()),
        )
        columns = [name for name in optional if name in piece]
        if self.coding.columns is None:
            self.coding.columns = columns
        if columns != self.coding.columns:
            raise DataError(
                f"{source} has the columns {columns} and earlier files {self.coding.columns}; "
                "files that are packed together need the same columns."
            )
        for name in _NOT_KEPT:
            if name in piece:
                self.request.note(f"the column {name} is not part of a pack")

    def _complete(self, ids: Any, role: str, source: str, first_row: int) -> Any:
        missing = missing_rows(ids)
        if len(missing):
            raise DataError(
                f"The {role} column of {source} is empty in {describe_rows(first_row + missing)}; "
                f"fill in the {role} or remove the row."
            )
        return ids

    def _labels(self, piece: Any, source: str, first_row: int) -> NDArray[np.int32]:
        """Return the codes of labels; an abstention is -1."""
        import pyarrow as pa

        labels = self._one_label_type(piece, source)
        codes = self.coding.labels.add(labels)
        known = self.coding.labels.code_of
        away = [known[one] for one in self.abstain if one in known]
        blank = known.get("", -2)
        empty = (codes < 0) | (codes == blank)
        if "" not in self.abstain and empty.any():
            raise DataError(
                f"The label column of {source} is empty in "
                f"{describe_rows(first_row + np.flatnonzero(empty))}; fill it in, remove the row, "
                f"or declare the empty label an abstention ({option('abstain', '')})."
            )
        abstained = empty | np.isin(codes, away) if away else empty
        self.coding.n_abstentions += int(abstained.sum())
        if pa.types.is_floating(labels.type) and not self.declared:
            raise DataError(
                f"The labels of {source} are fractional numbers, which do not look like classes; "
                f"give {option('type', LABELS)} if each is a class."
            )
        return np.where(abstained, np.int32(-1), codes)

    def _one_label_type(self, piece: Any, source: str) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_dictionary(piece.type):
            piece = piece.dictionary_decode()
        if pa.types.is_floating(piece.type) and not pa.types.is_float64(piece.type):
            piece = piece.cast(pa.float64())
        if pa.types.is_floating(piece.type):
            if pc.all(pc.equal(pc.round(piece), piece)).as_py() is not False:
                piece = piece.cast(pa.int64())
        elif not pa.types.is_boolean(piece.type):
            piece = PlainIds("label").take(piece, source)
        found = str(piece.type)
        if self.coding.label_type not in (None, found):
            raise DataError(
                f"The labels are {self.coding.label_type} in earlier rows and {found} in {source}; "
                "convert them to one type."
            )
        self.coding.label_type = found
        return piece

    def _times(self, piece: Any, places: Places, source: str) -> NDArray[Any]:
        times = as_timestamps(piece, places)
        found = str(times.dtype)
        if self.coding.time_type not in (None, found):
            raise DataError(
                f"Timestamps are {self.coding.time_type} in earlier rows and {found} in {source}; "
                "write them in one way."
            )
        self.coding.time_type = found
        return times

    def _selected(self, workers: Any, kinds: Any) -> NDArray[np.bool_] | None:
        """Return a mask of the rows by workers that are asked for; None keeps all rows."""
        import pyarrow as pa

        selection: Selection = self.request.selection
        if kinds is None and not selection.exclude and selection.kinds is None:
            return None
        columns = {"worker": _encoded(workers)}
        if kinds is not None:
            columns["worker_kind"] = _encoded(kinds.cast(pa.large_string()))
            self.coding.kinds |= set(columns["worker_kind"].vocabulary.tolist())
            if selection.kinds is None and {HUMAN, MODEL} <= self.coding.kinds:
                raise ParameterError(
                    f"The files have labels of humans and of models; choose with "
                    f"{option('kinds', HUMAN)}, {option('kinds', MODEL)} or {option('kinds', ALL)}."
                )
        return selection.rows(columns)[0]


def _encoded(column: Any) -> Any:
    from wisecrowd.core.ids.encoding import encode

    return encode(column, "worker")


def _rows_after(first_row: int, source: str) -> Any:
    return lambda rows, limit=5: f"{describe_rows(first_row + rows, limit)} of {source}"


def _pieces(
    source: Source, format: str, request: Request, check: Callable[[], None]
) -> Iterator[dict[str, Any]]:
    """Yield the columns of a file in pieces of about ``ROWS`` rows."""
    waiting: dict[str, list[Any]] = {}
    size = seen = 0
    for _, total, batch in read_batches([source], format, request):
        check()
        if not request.open_choices:
            require_packable(request.kind.name, source.name)
        for name, chunks in batch.items():
            waiting.setdefault(name, []).extend(chunks)
        size, seen = size + total - seen, total
        if size >= ROWS:
            yield {name: _joined(chunks) for name, chunks in waiting.items()}
            waiting, size = {}, 0
    require_packable(request.kind.name, source.name)
    if size:
        yield {name: _joined(chunks) for name, chunks in waiting.items()}


def require_packable(kind: str, source: str) -> None:
    """Refuse kinds of labels that packs do not hold."""
    if not is_packable(kind):
        raise DataError(
            f"{source} holds {kind}, and a pack holds classes, numbers or pairs; use the file "
            "itself."
        )


def _joined(chunks: list[Any]) -> Any:
    import pyarrow as pa

    if len({chunk.type for chunk in chunks}) > 1:
        chunks = [
            chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk
            for chunk in chunks
        ]
        chunks = [chunk.cast(pa.large_string()) for chunk in chunks]
    if pa.types.is_dictionary(chunks[0].type):
        chunks = [chunk.dictionary_decode() for chunk in chunks]
    return pa.concat_arrays(chunks)


def read_bucket(file: Path) -> Any:
    """Return all rows of a bucket as a pyarrow table, or None if it is empty."""
    import pyarrow as pa

    if not file.exists() or file.stat().st_size == 0:
        return None
    tables = []
    with pa.memory_map(str(file)) as mapped:
        while mapped.tell() < mapped.size():
            tables.append(pa.ipc.open_stream(mapped).read_all())
    return pa.concat_tables(tables)
