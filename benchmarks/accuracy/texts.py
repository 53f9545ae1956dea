"""Texts: transcriptions by a real crowd, calibration of their confidence, and CPU time.

``python -m benchmarks.run texts`` prints every row. Defaults were chosen on recordings with odd
numbers; calibration is that of even ones. crowd-kit's ROVER has a row where it is installed.
"""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from wisecrowd.aggregation import EmbeddingMedoid, Rover, TextMedoid
from wisecrowd.io.tables import read, read_frame
from wisecrowd.kinds.texts.metrics import edit_counts, word_error_rate
from wisecrowd.kinds.texts.words import TextRules

METHODS = {
    "medoid": (lambda: TextMedoid(rounds=0), None),
    "weighted medoid": (TextMedoid, None),
    "vectors of letters": (EmbeddingMedoid, None),
    "ROVER without weights": (lambda: Rover(rounds=0), None),
    "weighted ROVER": (Rover, 0.098),
}
EDGES = np.array([0.0, 0.5, 0.7, 0.85, 0.95, 0.98])


def run() -> list[Row]:
    folder, rows = data_folder() / "crowdspeech", []
    data: Any = read(folder / "answers.csv", type="texts")
    table = read_frame(folder / "truth.csv")
    known = dict(zip(table["task"].to_pylist(), table["text"].to_pylist(), strict=True))
    truth = np.array([known[task] for task in data.tasks.tolist()], dtype=object)
    even = np.arange(data.n_tasks) % 2 == 0
    for name, (make, bar) in METHODS.items():
        model = make().fit(data)
        rate, unseen = (word_error_rate(truth[k], model.texts_[k]) for k in (even | True, even))
        rows.append(Row(
            f"crowdspeech, {name}: word error rate (even recordings)",
            "–" if bar is None else f"≤ {bar}", f"{rate:.4f} ({unseen:.4f})",
            None if bar is None else rate <= bar,
        ))  # fmt: skip
    for n_answers in (7, 5, 3, 2):
        some = _first_answers(data, n_answers)
        model = Rover().fit(some)
        rows.append(Row(
            f"crowdspeech, even recordings, {n_answers} answers: confidence of words (right; "
            "calibration error; largest), of texts (right)",
            "–", _calibration(model, truth, even), None,
        ))  # fmt: skip
    seconds = min(_seconds(lambda: Rover().fit(data)) for _ in range(3))
    each = 1000 * seconds / data.n_tasks
    rows.append(Row("ROVER: CPU ms per recording of 7 answers", "≤ 1", f"{each:.2f}", each <= 1))
    return [*rows, *_crowd_kit(data, truth, even, seconds)]


def _seconds(function: Any) -> float:
    begun = time.process_time()
    function()
    return time.process_time() - begun


def _first_answers(data: Any, n: int) -> Any:
    """Return the first ``n`` answers of each task, in a random order of the answers."""
    order = np.random.default_rng(0).permutation(data.n_annotations)
    place = np.empty(data.n_annotations, dtype=np.int64)
    by_task = order[np.argsort(data.task[order], kind="stable")]
    place[by_task] = np.arange(data.n_annotations) - data.indptr[data.task[by_task]]
    return data.select_annotations(place < n)


def _calibration(model: Any, truth: NDArray[Any], use: NDArray[np.bool_]) -> str:
    rules, right, share = TextRules(), [], []
    ends = np.append(0, np.cumsum(model.n_words_))
    kept = np.repeat(use, model.n_words_)
    for i in np.flatnonzero(use).tolist():
        words = [rules.words(word)[0] for word in model.words_[ends[i] : ends[i + 1]].tolist()]
        right += right_words(words, rules.words(truth[i]))
        edits, n_true, _ = edit_counts([truth[i]], [model.texts_[i]], rules)
        share.append(1 - edits[0] / n_true[0])
    sure, hit = model.word_confidence_[kept], np.array(right, dtype=np.float64)
    bins = np.searchsorted(EDGES, sure, side="right") - 1
    gaps = [abs(sure[bins == b].sum() - hit[bins == b].sum()) for b in range(len(EDGES))]
    return (
        f"{sure.mean():.3f} ({hit.mean():.3f}; {sum(gaps) / len(sure):.3f}; {sure.max():.3f}), "
        f"{model.confidence_[use].mean():.3f} ({np.mean(share):.3f})"
    )


def right_words(words: list[str], truth: list[str]) -> list[bool]:
    """Return which words are those of the truth, in an alignment with the fewest edits."""
    n, m = len(words), len(truth)
    cost = np.zeros((n + 1, m + 1), dtype=np.int64)
    cost[:, 0], cost[0] = np.arange(n + 1), np.arange(m + 1)
    for s in range(1, n + 1):
        for t in range(1, m + 1):
            change = cost[s - 1, t - 1] + (words[s - 1] != truth[t - 1])
            cost[s, t] = min(change, cost[s - 1, t] + 1, cost[s, t - 1] + 1)
    right, s, t = [False] * n, n, m
    while s and t:
        if cost[s, t] == cost[s - 1, t - 1] + (words[s - 1] != truth[t - 1]):
            right[s - 1] = words[s - 1] == truth[t - 1]
            s, t = s - 1, t - 1
        elif cost[s, t] == cost[s - 1, t] + 1:
            s -= 1
        else:
            t -= 1
    return right


def _crowd_kit(
    data: Any, truth: NDArray[Any], even: NDArray[np.bool_], seconds: float
) -> list[Row]:
    """Return the row of crowd-kit's ROVER on texts without case and punctuation, if it is here."""
    try:
        import pandas as pd
        from crowdkit.aggregation import ROVER
    except ImportError:
        return []
    frame = pd.DataFrame(data.to_dict())
    frame["text"] = [
        " ".join(re.sub(r"[^\w\s']", " ", text.lower()).split()) for text in frame["text"]
    ]
    method = ROVER(lambda text: text.split(" "), " ".join, silent=True)
    begun = time.process_time()
    found = method.fit_predict(frame)
    other = time.process_time() - begun
    texts = found.reindex(data.tasks).fillna("").to_numpy()
    rate, unseen = word_error_rate(truth, texts), word_error_rate(truth[even], texts[even])
    return [
        Row("crowdspeech, crowd-kit's ROVER: word error rate (even recordings)", "–",
            f"{rate:.4f} ({unseen:.4f})", None),
        Row("CPU seconds: crowd-kit's ROVER, and its ratio to ours", "–",
            f"{other:.2f}, {other / seconds:.0f} times", None),
    ]  # fmt: skip
