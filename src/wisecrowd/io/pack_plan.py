"""Between the passes of packing: final codes of workers, classes and items, and known answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import Encoded, encode, lookup
from wisecrowd.core.kinds import LABELS
from wisecrowd.core.messages.descriptions import describe_ids, suggestion
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.validation import distinct_ids
from wisecrowd.io.pack_buckets import Coding
from wisecrowd.io.pack_payloads import PairCoding, outcome_meaning
from wisecrowd.io.pack_progress import Progress
from wisecrowd.io.pack_shards import PairPlan, ShardPlan
from wisecrowd.kinds.classes.columns import in_numeric_order
from wisecrowd.packs.kind import packed_kind
from wisecrowd.packs.pack import shards_for
from wisecrowd.packs.summary import TEXT


def shard_plan(progress: Progress, options: dict[str, Any], gold: Any) -> ShardPlan:
    """Return final codes of workers and labels, and the number of shards."""
    coding = progress.coding
    if options["patterns"] == "always" and not coding.packed.of_classes:
        raise ParameterError(
            f"{option('patterns', 'always')} is for classes, and these are {coding.kind}; leave it "
            "out."
        )
    if options["patterns"] == "always" and (coding.columns or gold is not None):
        raise ParameterError(
            "Weights, timestamps and gold belong to single tasks, which then cannot share rows; "
            f"leave out {option('patterns', 'always')}."
        )
    workers, worker_code = _sorted_codes(list(coding.workers.code_of), "worker")
    classes, label_code = np.empty(0, object), np.empty(0, np.int32)
    if coding.packed.of_classes:
        classes, label_code = _classes(list(coding.labels.code_of), options)
    asked = options["shards"]
    columns = {"weight": "float64", "timestamp": coding.time_type or "float64"}
    optional = {name: columns[name] for name in coding.columns or [] if name in columns}
    return ShardPlan(
        folder=progress.folder,
        buckets=progress.buckets,
        n_buckets=progress.n_buckets,
        n_shards=shards_for(coding.n_rows) if asked == "auto" else int(asked),
        worker_code=worker_code,
        label_code=label_code,
        workers=workers,
        classes=classes,
        duplicates=options["duplicates"],
        check_classes=options["type"] is None and options["classes"] is None,
        gold=None if gold is None else _gold(gold, classes, coding),
        task_type=coding.task_type or TEXT,
        columns=optional | dict(coding.packed.payload),
        kind=coding.packed.name,
        pairs=_pair_plan(coding.pairs) if coding.packed.about_items else None,
    )


def _pair_plan(coding: PairCoding) -> PairPlan:
    """Return final codes of items, and what the outcomes of all rows mean."""
    values = list(coding.items.code_of)
    encoded = encode(values, "item")
    if len(encoded.codes) and encoded.codes.min() < 0:
        raise DataError("An item id consists of white space; fill it in or remove the row.")
    code_of = dict(zip(values, encoded.codes.tolist(), strict=True))
    winner = coding.item_of_outcomes(code_of)
    meaning = outcome_meaning(coding) if coding.seen else np.empty(0, np.int32)
    return PairPlan(encoded.vocabulary, encoded.codes, meaning, winner)


def _sorted_codes(values: list[Any], role: str) -> tuple[NDArray[Any], NDArray[np.int32]]:
    encoded: Encoded = encode(values, role)
    if len(encoded.codes) and encoded.codes.min() < 0:
        raise DataError(f"A {role} id consists of white space; fill it in or remove the row.")
    return encoded.vocabulary, np.append(encoded.codes, np.int32(-1))


def _classes(values: list[Any], options: dict[str, Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    away = set(map(str, options["abstain"])) | {""}
    used = [value for value in values if str(value) not in away]
    if options["classes"] is not None:
        vocabulary = distinct_ids(options["classes"], "classes")
        codes = lookup(used, vocabulary)
        if (codes < 0).any():
            value = used[int(np.argmax(codes < 0))]
            raise DataError(
                f"Label {value!r}{suggestion(value, vocabulary)} is not among the declared classes "
                f"({describe_ids(vocabulary)}); correct it, or add it to classes."
            )
    else:
        vocabulary, codes = encode(used, "label").vocabulary, encode(used, "label").codes
        if packed_kind(options["type"] or LABELS).ordered:
            codes, vocabulary = in_numeric_order(codes, vocabulary)
    code_of = dict(zip(used, codes.tolist(), strict=True))
    return vocabulary, np.array([*(code_of.get(v, -1) for v in values), -1], dtype=np.int32)


def _gold(gold: Mapping[Any, Any], classes: NDArray[Any], coding: Coding) -> Any:
    import pyarrow as pa

    task_type = coding.task_type
    if coding.packed.about_items:
        raise DataError("Pairs have no gold: their answers are about items; leave it out.")
    known = _known_classes(gold, classes) if coding.packed.of_classes else _known_numbers(gold)
    try:
        kind = pa.large_string() if task_type == TEXT else pa.int64()
        return pa.array(list(gold), kind), known
    except (pa.ArrowException, TypeError, ValueError):
        raise DataError(
            f"The tasks of the gold are not {task_type} ids, as those of the labels are; convert "
            "them."
        ) from None


def _known_classes(gold: Mapping[Any, Any], classes: NDArray[Any]) -> NDArray[np.int32]:
    codes = lookup(list(gold.values()), classes)
    if (codes < 0).any():
        task, value = list(gold.items())[int(np.argmax(codes < 0))]
        raise DataError(
            f"Gold gives task {task!r} the class {value!r}{suggestion(value, classes)}, which is "
            f"not among the classes ({describe_ids(classes)}); correct it."
        )
    return codes


def _known_numbers(gold: Mapping[Any, Any]) -> NDArray[np.float64]:
    found = np.empty(len(gold))
    for place, (task, value) in enumerate(gold.items()):
        try:
            found[place] = float(value)
        except (TypeError, ValueError):
            found[place] = np.nan
        if not np.isfinite(found[place]):
            raise DataError(
                f"Gold gives task {task!r} the value {value!r}, which is not a finite number; "
                "correct it or leave it out."
            )
    return found
