"""Files from strangers: damaged and forged models, and tables that hold more than they show."""

from __future__ import annotations

import gzip
import io
import resource
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.support.damaged_files import Outcomes, fingerprint, fuzz_file, fuzz_model

import wisecrowd as wc
from benchmarks.rows import Row
from wisecrowd.core.exceptions import DataError, WisecrowdWarning

DAMAGED = {"aggregator": 5000, "classifier": 4500, "checkpoint": 500}
FORGED = {"aggregator": 1500, "classifier": 1500}
MOST_MEMORY = 256  # MB more than before


def megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def crowd() -> wc.CrowdLabels:
    workers = 6 * wc.simulate.OneCoinWorkers(8, 2)
    return wc.simulate.crowd(40, workers, wc.simulate.PerTask(3), n_classes=3).labels


def model_rows() -> list[Row]:
    labels, X = crowd(), np.random.default_rng(0).normal(size=(40, 4))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        prior = wc.priors.WeakDiagonal()
        wc.aggregation.DawidSkene(prior=prior).fit(labels).save(folder / "aggregator")
        wc.learning.AggNet(epochs=1).fit(X, labels).save(folder / "classifier")
        file = folder / "checkpoint.safetensors"
        learner = wc.learning.CCEM(epochs=1, checkpoint=file).fit(X, labels)
        use: dict[str, Callable[[object], object]] = {
            "aggregator": lambda model: model.predict_proba(labels),
            "classifier": lambda model: model.predict_proba(X),
        }
        before = megabytes()
        damaged = [
            fuzz_model(folder / name, DAMAGED[name]) for name in ("aggregator", "classifier")
        ]
        damaged.append(
            fuzz_file(
                file,
                DAMAGED["checkpoint"],
                lambda: fingerprint(learner.fit(X, labels, resume=True)),
            )
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WisecrowdWarning)  # a forged model may well know less
            forged = [
                fuzz_model(folder / name, n, seed=1, forge=True, use=use[name])
                for name, n in FORGED.items()
            ]
        grown = megabytes() - before
    return [
        _row("model files and checkpoints damaged", "typed error or equal model", damaged, False),
        _row("model files forged, digests and all", "typed error or a model that works", forged,
             True),
        Row("memory while reading them", f"≤ {MOST_MEMORY} MB more", f"{grown} MB more",
            grown <= MOST_MEMORY),
    ]  # fmt: skip


def _row(what: str, bar: str, found: list[Outcomes], other: bool) -> Row:
    total, refused, equal, changed, crashed = (
        sum(values)
        for values in zip(
            *((f.total, f.refused, f.equal, f.changed, len(f.crashes)) for f in found), strict=True
        )
    )
    for crash in (crash for one in found for crash in one.crashes):
        print(crash)
    text = f"{total}: {refused} refused, {equal} equal, {changed} others, {crashed} crashes"
    return Row(what, bar, text, crashed == 0 and (other or changed == 0))


# ------------------------------------------------------------------------------------------- bombs


def parquet_of_equal_rows(path: Path) -> None:
    part = pa.table({name: np.zeros(1 << 24, np.int64) for name in ("task", "worker", "label")})
    with pq.ParquetWriter(path, part.schema, compression="zstd") as writer:
        for _ in range(8):
            writer.write_table(part, row_group_size=1 << 24)


def parquet_of_long_text(path: Path) -> None:
    n = 3200
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), ["x" * 1_000_000])
    schema = pa.schema([("task", pa.int64()), ("worker", pa.int64()), ("label", text.type)])
    table = pa.table({"task": range(n), "worker": range(n), "label": text}, schema=schema)
    pq.write_table(table, path, store_schema=False, compression="zstd")


def gzip_of(first: bytes, then: bytes) -> Callable[[Path], None]:
    """Return how to write what unpacks to 3.2 GB: a beginning, and one part again and again."""

    def make(path: Path) -> None:
        part = then * ((1 << 25) // len(then))
        # Gzip files may follow each other in one file, so a part need not be packed twice.
        path.write_bytes(gzip.compress(first) + 96 * gzip.compress(part))

    return make


def zip_of_spaces(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("ann.jsonl", "w", force_zip64=True) as file,
    ):
        for _ in range(100):
            file.write(b" " * (1 << 25))


def zip_that_understates(path: Path) -> None:
    """Write an archive whose directory says that 3.2 GB are 1000 bytes."""
    zip_of_spaces(path)
    true, told = ((n).to_bytes(8, "little") for n in (100 << 25, 1000))
    path.write_bytes(path.read_bytes().replace(true, told))


def array_of_a_bold_header(path: Path) -> None:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f8", "fortran_order": False, "shape": (400_000_000, 1)}
    )
    path.write_bytes(file.getvalue() + bytes(400_000))


BOMBS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "parquet of equal rows": ("rows.parquet", parquet_of_equal_rows),
    "parquet of one long text": ("text.parquet", parquet_of_long_text),
    "csv.gz of equal rows": ("rows.csv.gz", gzip_of(b"task,worker,label\n", b"1,a,x\n")),
    "csv.gz of one row": ("row.csv.gz", gzip_of(b"task,worker,label\n1,a,", b"x")),
    "jsonl.gz of one text": ("text.jsonl.gz", gzip_of(b'{"task": 1, "worker": "', b"x")),
    "zip of spaces": ("spaces.zip", zip_of_spaces),
    "zip that understates its size": ("small.zip", zip_that_understates),
    "npy": ("features.npy", array_of_a_bold_header),
}


@contextmanager
def little_memory(more: int) -> Iterator[None]:
    """Let this process have so many bytes more of address space, and no more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def bomb_rows() -> list[Row]:
    from wisecrowd.io.feature_files import read_features

    rows = []
    with tempfile.TemporaryDirectory() as place:
        for what, (name, make) in BOMBS.items():
            path = Path(place) / name
            make(path)
            size, before = path.stat().st_size, megabytes()
            read = read_features if name.endswith(".npy") else wc.read
            try:
                with little_memory(1 << 30):
                    read(path)
                said = "accepted"
            except DataError as error:
                said = "refused" if "\n" not in str(error) else "refused in several lines"
            except Exception as error:
                said = f"{type(error).__name__}"
            grown = megabytes() - before
            path.unlink()
            rows.append(
                Row(f"{what}, {size / 1e6:.2g} MB that decode to 3.2 GB", "refused, ≤ 300 MB more",
                    f"{said}, {grown} MB more", said == "refused" and grown <= 300)
            )  # fmt: skip
    return rows


def run() -> list[Row]:
    return [*model_rows(), *bomb_rows()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
