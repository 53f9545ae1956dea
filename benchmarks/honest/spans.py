"""Spans and texts: what is claimed and what is right, on real crowds and on simulated ones.

``python -m benchmarks.run honest_spans`` prints every row, in about one CPU minute. Rules and
constants are given; these sets judge them, and nothing is chosen by the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.real_data import data_folder
from benchmarks.accuracy.spans import calibration_error, simulated_row
from benchmarks.rows import Row
from wisecrowd.aggregation import BSC, HMMCrowd, Rover, TokenWise
from wisecrowd.io.tables import read, read_frame, read_truth
from wisecrowd.kinds.sequences.answers import known_tags
from wisecrowd.kinds.sequences.methods.marked_spans import MarkedSpans, tokens_of
from wisecrowd.kinds.sequences.metrics import EXACT, compare_spans, span_scores
from wisecrowd.kinds.texts.metrics import edit_counts
from wisecrowd.kinds.texts.words import TextRules

N_BUSIEST = 4
MOST_ECE = 0.075
LEAST = 1e-3  # smallest probability in the log loss, which a few tokens would rule otherwise
METHODS = {"bsc": BSC, "token-wise": TokenWise, "hmm-crowd": HMMCrowd}
# F1 of spans and log loss of tokens before answers were bound to spans that somebody marked. Of the
# truth, spans count that begin with B, which the bars were measured with: 22 begin with I.
F1_BEFORE = {"bsc": {"all": 0.776, "four": 0.656}, "token-wise": {"all": 0.766, "four": 0.665}}
LOSS_BEFORE = {"bsc": 0.237, "token-wise": 0.287}


class Judged(NamedTuple):
    """What a fit claims of its spans and tags, and what is right."""

    confidence: NDArray[np.float64]
    right: NDArray[np.bool_]
    f1: float  # of true spans that begin with B
    f1_of_all: float  # of all true spans
    log_loss: float
    n_unmarked: int  # spans of the answers that no worker marked

    @classmethod
    def of(cls, model: Any, data: Any, truth: NDArray[np.int64]) -> Judged:
        """Compare the answers with known tags, on the tasks with labels and known tags."""
        pointer, scheme = data.token_pointer, data.tag_scheme
        task = np.repeat(np.arange(data.n_tasks), data.length)
        known = (truth >= 0) & (data.labels_per_task[task] > 0)
        length = np.bincount(task[known], minlength=data.n_tasks)
        ends = np.append(0, np.cumsum(length))
        found, wanted = (scheme.spans(tags[known], ends) for tags in (model.path_, truth))
        whole = scheme.spans(model.path_, pointer)
        right = compare_spans(found, wanted, length) == EXACT
        own = model.path_[known]
        f1, f1_of_all = (
            span_scores(scheme, tags, own, ends)["span_f1"]
            for tags in (begun(scheme, truth[known], ends), truth[known])
        )
        chance = model.marginals_[known, truth[known]]
        judged = known[pointer[whole.sequence] + whole.start]
        return cls(
            model.span_confidence_[judged], right, f1, f1_of_all,
            float(-np.log(np.maximum(chance, LEAST)).mean()),
            int((MarkedSpans.of(data).votes_for(whole) == 0).sum()),
        )  # fmt: skip


def begun(scheme: Any, tags: NDArray[np.int64], pointer: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return tags of BIO without the spans that begin with I."""
    spans = scheme.spans(tags, pointer)
    first, size = pointer[spans.sequence] + spans.start, spans.end - spans.start
    left = ~scheme.begins[tags[first]]
    _, token = tokens_of(first[left], (first + size)[left])
    kept = tags.copy()
    kept[token] = 0  # outside
    return kept


def busiest(data: Any, n: int = N_BUSIEST) -> Any:
    """Return the labels of the workers with the most labels."""
    order = np.argsort(-data.labels_per_worker, kind="stable")[:n]
    return data.select_annotations(np.isin(data.worker, order))


def named_entities() -> list[Row]:
    """Return the reliability of spans of a real crowd, and of its four busiest workers."""
    folder = data_folder()
    if folder is None:
        return [Row("named entities", "", "no data: set WISECROWD_DATA")]
    everybody = read(folder / "ner_mturk" / "answers.csv", type="sequences")
    table = read_truth(folder / "ner_mturk" / "truth.csv")
    known = dict(zip(table["task"].to_pylist(), table["label"].to_pylist(), strict=True))
    rows: list[Row] = []
    for who, data in {"all": everybody, "four": busiest(everybody)}.items():
        truth = known_tags(known, data)
        for name, make in METHODS.items():
            rows += rows_of(name, who, Judged.of(make().fit(data), data, truth))
    return rows


def rows_of(name: str, who: str, one: Judged) -> list[Row]:
    """Return the rows of a method on a crowd; hmm-crowd has no bars."""
    what = f"ner_mturk, {'all' if who == 'all' else 'four busiest'} workers, {name}"
    error, bound = calibration_error(one.confidence, one.right), name in F1_BEFORE
    f1 = F1_BEFORE[name][who] if bound else None
    loss = LOSS_BEFORE.get(name) if who == "all" else None
    return [
        Row(f"{what}: calibration error of spans (confidence, right)",
            f"at most {MOST_ECE}" if bound else "–",
            f"{error:.3f} ({one.confidence.mean():.3f}, {one.right.mean():.3f})",
            error <= MOST_ECE if bound else None),
        Row(f"{what}: F1 of exact spans (with true ones that begin with I; that nobody marked)",
            f"at least {f1}" if bound else "–",
            f"{one.f1:.3f} ({one.f1_of_all:.3f}; {one.n_unmarked})",
            round(one.f1, 3) >= f1 if bound else None),
        Row(f"{what}: log loss of tokens", f"below {loss}" if loss else "–",
            f"{one.log_loss:.3f}", one.log_loss < loss if loss else None),
    ]  # fmt: skip


def transcripts() -> list[Row]:
    """Return the agreement that ROVER claims for real transcripts, and the words that are right."""
    folder = data_folder()
    if folder is None:
        return []
    data = read(folder / "crowdspeech" / "answers.csv", type="texts")
    table = read_frame(folder / "crowdspeech" / "truth.csv")
    known = dict(zip(table["task"].to_pylist(), table["text"].to_pylist(), strict=True))
    model = Rover().fit(data)
    truth = [known[task] for task in data.tasks.tolist()]
    edits, words, _ = edit_counts(truth, model.texts_, TextRules())
    right = float(np.mean(1 - edits / words))
    return [Row("crowdspeech, rover: agreement on words (share right)", "–",
                f"{model.confidence_.mean():.3f} ({right:.3f})", None)]  # fmt: skip


def run() -> list[Row]:
    """Return all rows; the last ones say what caution costs where workers err independently."""
    simulated = [simulated_row(name, make) for name, make in METHODS.items()]
    return [*named_entities(), *transcripts(), *simulated]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
