"""Claimed and right for every kind of labels: calibration error, log loss, coverage and pictures.

``python -m benchmarks.run reliability`` prints the rows and writes docs/images/reliability/*.svg.
Every kind has its default method. Real crowds are used where a truth is shared; rankings have none.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from benchmarks.accuracy.boxes import pedestrians
from benchmarks.accuracy.item_ranking import read_pairs
from benchmarks.accuracy.numbers import read_numbers
from benchmarks.accuracy.real_data import data_folder, read_set
from benchmarks.accuracy.sets import sentences
from benchmarks.accuracy.texts import right_words
from benchmarks.honest.reliability_picture import Bin, picture
from benchmarks.honest.results import fitted
from benchmarks.honest.sets import strong_emotions
from benchmarks.honest.workers_by_gold import SETS
from benchmarks.rows import Row
from wisecrowd import CrowdLabels, simulate
from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.kinds import get_kind
from wisecrowd.core.registry import get_method
from wisecrowd.io.tables import read, read_frame
from wisecrowd.kinds.boxes.metrics import BoxTable, match_boxes
from wisecrowd.kinds.boxes.scorer import answers_of
from wisecrowd.kinds.masks.container import CrowdMasks
from wisecrowd.kinds.masks.metrics import mask_iou
from wisecrowd.kinds.masks.run_lengths import dense_mask
from wisecrowd.kinds.pairs.answers import known_scores
from wisecrowd.kinds.rankings.container import CrowdRankings
from wisecrowd.kinds.same.answers import known_clusters
from wisecrowd.kinds.same.container import CrowdSame
from wisecrowd.kinds.sequences.answers import known_tags
from wisecrowd.kinds.sequences.metrics import EXACT, compare_spans
from wisecrowd.kinds.texts.words import TextRules

PICTURES = Path(__file__).parents[2] / "docs" / "images" / "reliability"
N_BINS = 10
LEVELS = (0.5, 0.8, 0.9, 0.95)
SMALLEST = 1e-3  # claims nearer to 0 or 1 count as this in the log loss
NUMBERS = ("dots", "emotion_numeric", "movie_reviews")
GRADES = ("truthfulness_s6", "valence5")
SMALLER, EACH = 4, 4  # a mask has a quarter of the image's sides; every fourth image
SEEDS = range(4)


class Claims(NamedTuple):
    """Probabilities that are claimed (n,), and what is right: 0, 1 or a share (n,)."""

    claimed: np.ndarray
    right: np.ndarray


class Measured(NamedTuple):
    """Claims by set; the words of both axes; coverage of 95% intervals by set; and the levels."""

    sets: dict[str, Claims]
    claim: str
    truth: str
    covered: dict[str, float]
    by_level: bool = False  # claims are the levels of intervals


# -------------------------------------------------------------------------- the same for all kinds


def bins(claims: Claims, *, by_level: bool = False, n_bins: int = N_BINS) -> list[Bin]:
    """Return mean claim, share right and count of each bin of equal width, or of each level."""
    if by_level:
        _, place = np.unique(claims.claimed, return_inverse=True)
    else:
        place = np.minimum((claims.claimed * n_bins).astype(np.int64), n_bins - 1)
    count = np.bincount(place)
    used = np.flatnonzero(count)
    claimed, right = (np.bincount(place, values) for values in claims)
    return [Bin(claimed[b] / count[b], right[b] / count[b], int(count[b])) for b in used]


def calibration_error(claims: Claims, *, by_level: bool = False) -> float:
    """Return the mean distance of claimed and right over bins, weighted by their counts."""
    found = bins(claims, by_level=by_level)
    gaps = sum(one.count * abs(one.claimed - one.right) for one in found)
    return gaps / max(len(claims.claimed), 1)


def log_loss(claims: Claims) -> float:
    """Return minus the mean log-probability of being right or wrong, as it was."""
    p = np.clip(claims.claimed, SMALLEST, 1 - SMALLEST)
    return float(-np.mean(claims.right * np.log(p) + (1 - claims.right) * np.log1p(-p)))


def pooled(some: Sequence[Claims]) -> Claims:
    """Return the claims of several sets as one."""
    return Claims(*(np.concatenate(part) for part in zip(*some, strict=True)))


def rows_of(kind: str, found: Measured) -> list[Row]:
    """Return calibration error, log loss and coverage of one kind, of all sets and of each."""
    every, names = pooled(list(found.sets.values())), ", ".join(found.sets)
    if len(found.sets) > len(NUMBERS):
        names = f"{len(found.sets)} sets"
    method, n = get_kind(kind).default_method, len(every.claimed)
    about = f"reliability, {kind} by {method} ({names})"

    def each(measure: Callable[[Claims], float]) -> str:
        if len(found.sets) == 1:
            return ""
        values = [measure(one) for one in found.sets.values()]
        if len(values) > len(NUMBERS):
            return f"; mean over sets {np.mean(values):.3f}"
        return "; " + ", ".join(f"{x:.3f}" for x in values)

    def error(claims: Claims) -> float:
        return calibration_error(claims, by_level=found.by_level)

    rows = [
        Row(f"{about}: calibration error", "reported",
            f"{error(every):.3f} of {n} claims, {every.claimed.mean():.3f} claimed, "
            f"{every.right.mean():.3f} right{each(error)}"),
    ]  # fmt: skip
    if not found.by_level:
        rows.append(Row(f"{about}: log loss of claims", "reported",
                        f"{log_loss(every):.3f}{each(log_loss)}"))  # fmt: skip
    levels = bins(every, by_level=True) if found.by_level else []
    covered = {f"{one.claimed:.0%} intervals": f"{one.right:.3f} of {one.count}" for one in levels}
    covered |= {f"95% intervals, {name}": f"{share:.3f}" for name, share in found.covered.items()}
    rows += [Row(f"{about}: coverage of {what}", "reported", x) for what, x in covered.items()]
    return rows


def fit(kind: str, data: Any) -> Any:
    """Return a fit of the default method of a kind."""
    return get_method(get_kind(kind).default_method)().fit(data)


def folder_of(name: str) -> Path:
    """Return the folder of a set of real data."""
    folder = data_folder()
    if folder is None or not (folder / name).is_dir():
        raise FileNotFoundError(f"There is no set {name}: set WISECROWD_DATA.")
    return folder / name


def truth_of(name: str, key: str, value: str) -> dict[Any, Any]:
    """Return two columns of the truth of a set as a mapping."""
    table = read_frame(folder_of(name) / "truth.csv")
    return dict(zip(table[key].to_pylist(), table[value].to_pylist(), strict=True))


# ------------------------------------------------------------------------------- one for each kind


def labels(names: Sequence[str] = SETS) -> Measured:
    """Confidence of classes on real crowds."""
    found = {}
    for name in names:
        folder_of(name)
        one: Any = fitted(name)
        found[name] = Claims(one.confidence, one.right.astype(float))
    return Measured(found, "confidence of the label", "share of right labels", {})


def ordered(names: Sequence[str] = GRADES) -> Measured:
    """Confidence of grades."""
    found = {}
    for name in names:
        plain, truth = read_set(folder_of(name))
        table = plain.to_dict()
        grades = CrowdLabels.from_arrays(
            table["task"], table["worker"], [int(x) for x in table["label"]], type="ordered"
        )
        model = fit("ordered", grades)
        rows = [i for i, task in enumerate(model.tasks_.tolist()) if task in truth]
        right = [int(truth[model.tasks_[i]]) == model.labels_[i] for i in rows]
        found[name] = Claims(model.confidence_[rows], np.array(right, dtype=float))
    return Measured(found, "confidence of the grade", "share of right grades", {})


def numbers(names: Sequence[str] = NUMBERS) -> Measured:
    """Coverage of intervals at several levels; those below 95% are narrower as in a normal law."""
    found, covered = {}, {}
    for name in names:
        data, truth = read_numbers(folder_of(name))
        model = fit("numbers", data)
        true = np.array([truth.get(task, np.nan) for task in model.tasks_.tolist()])
        parts = []
        for level in LEVELS:
            share = ndtri((1 + level) / 2) / ndtri(0.975)
            low = model.values_ - share * (model.values_ - model.low_)
            high = model.values_ + share * (model.high_ - model.values_)
            inside = ((low <= true) & (true <= high))[~np.isnan(true)].astype(float)
            parts.append(Claims(np.full(len(inside), level), inside))
        found[name] = pooled(parts)
        covered[name] = float(parts[-1].right.mean())
    return Measured(found, "level of the interval", "share of true numbers inside", covered, True)


def order_claims(model: Any, truth: np.ndarray) -> Claims:
    """Return the probability of the order of two items, by the error of their difference."""
    known = np.flatnonzero(~np.isnan(truth))
    first, second = (known[side] for side in np.triu_indices(len(known), 1))
    apart = truth[first] != truth[second]
    first, second = first[apart], second[apart]
    covariance = getattr(model, "covariance_", None)
    if covariance is None:
        covariance = np.diag(((model.high_ - model.low_) / (2 * ndtri(0.975))) ** 2)
    variance = covariance[first, first] + covariance[second, second] - 2 * covariance[first, second]
    gap = model.scores_[first] - model.scores_[second]
    claimed = ndtr(np.abs(gap) / np.sqrt(np.maximum(variance, 1e-12)))
    same = np.sign(gap) == np.sign(truth[first] - truth[second])
    return Claims(claimed, np.where(gap == 0, 0.5, same))


def pairs(n_seeds: int = len(SEEDS)) -> Measured:
    """Order of two items by reading difficulty; coverage of scores, which needs simulations."""
    data = read_pairs("reading_difficulty")
    truth = known_scores(truth_of("reading_difficulty", "item", "score"), data.items)
    inside = []
    for seed in range(n_seeds):
        made = simulate.votes(20, 25, 1500, random_state=seed)
        model = fit("pairs", made.pairs)
        inside.append((model.low_ <= made.scores) & (made.scores <= model.high_))
    return Measured(
        {"reading_difficulty": order_claims(fit("pairs", data), truth)},
        "probability of the order of two items", "share of right orders",
        {"simulated votes": float(np.mean(inside))},
    )  # fmt: skip


def rankings(n_seeds: int = len(SEEDS)) -> Measured:
    """Order of two items, and coverage of scores: simulated, because no real set has a truth."""
    claims, inside = [], []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        scores = rng.normal(0, 0.7, 20)
        scores -= scores.mean()
        drawn = [rng.permutation(20)[:4] for _ in range(150)]
        orders = [one[np.argsort(-(scores[one] + rng.gumbel(size=4)))].tolist() for one in drawn]
        data = CrowdRankings.from_arrays(None, np.arange(150) % 15, orders, items=range(20))
        model = fit("rankings", data)
        claims.append(order_claims(model, scores))
        inside.append((model.low_ <= scores) & (scores <= model.high_))
    return Measured(
        {"simulated rankings": pooled(claims)}, "probability of the order of two items",
        "share of right orders", {"simulated rankings": float(np.mean(inside))},
    )  # fmt: skip


def sequences() -> Measured:
    """Confidence of spans of named entities."""
    data: Any = read(folder_of("ner_mturk") / "answers.csv", type="sequences")
    truth = known_tags(truth_of("ner_mturk", "task", "label"), data)
    model = fit("sequences", data)
    spans, wanted = (
        data.tag_scheme.spans(tags, data.token_pointer) for tags in (model.path_, truth)
    )
    right = compare_spans(spans, wanted, data.length) == EXACT
    claims = Claims(model.span_confidence_, right.astype(float))
    return Measured({"ner_mturk": claims}, "confidence of the span", "share of exact spans", {})


def sets() -> Measured:
    """Probability of classes that some worker ticked."""
    found = {}
    folder_of("ner_mturk")
    for name, (data, truth) in (
        ("ner_mturk types", sentences()), ("emotion_numeric above 20", strong_emotions()),
    ):  # fmt: skip
        model = fit("sets", data)
        ticked = np.zeros((data.n_tasks, data.n_classes), dtype=bool)
        ticked[np.repeat(data.task, np.diff(data.pointer)), data.members] = True
        ticked &= truth.known[:, None]
        members = truth.members[:, : data.n_classes]
        found[name] = Claims(model.probas_[ticked], members[ticked].astype(float))
    return Measured(found, "probability of a ticked class", "share of true classes", {})


def same() -> Measured:
    """Probability that two items are the same, for the pairs that were asked."""
    bird: Any = read(folder_of("birds5_pairs") / "answers.csv", type="same")
    birds = bird, known_clusters(truth_of("birds5_pairs", "item", "cluster"), bird.items)
    found = {}
    for name, (data, truth) in (("birds5_pairs", birds), ("leaves9 as pairs", leaf_pairs())):
        model = fit("same", data)
        _, first = np.unique(data.task, return_index=True)
        right = truth[data.left[first]] == truth[data.right[first]]
        found[name] = Claims(model.p_same_, right.astype(float))
    return Measured(found, "probability of the same", "share of pairs that are the same", {})


def leaf_pairs(per_label: int = 2) -> tuple[CrowdSame, np.ndarray]:
    """Return votes of leaves9: a worker calls two leaves the same if their labels are equal."""
    plain, truth = read_set(folder_of("leaves9"))
    rng, table = np.random.default_rng(0), []
    for worker in range(plain.n_workers):
        own = np.flatnonzero(plain.worker == worker)
        for _ in range(per_label):
            other = rng.permutation(own)
            table += [(a, b) for a, b in zip(own, other, strict=True) if a < b]
    left, right = np.array(table).T
    says = np.where(plain.label[left] == plain.label[right], "same", "different")
    item = plain.tasks[plain.task]
    data = CrowdSame.from_arrays(None, plain.worker[left], item[left], item[right], says)
    return data, known_clusters(truth, data.items)


def boxes() -> Measured:
    """Confidence of boxes around pedestrians."""
    folder_of("pedestrian_boxes")
    data, truth = pedestrians()
    model = fit("boxes", data)
    found = truth.part(answers_of(model).table(classes=False))
    if len(found.boxes) != len(model.box_confidence_):
        raise ValueError("Some images of pedestrian_boxes have no truth.")
    right = np.zeros(len(found.boxes))
    right[match_boxes(found, BoxTable(*truth.table), 0.5).first] = 1
    claims = Claims(model.box_confidence_, right)
    return Measured(
        {"pedestrian_boxes": claims}, "confidence of the box",
        "share of boxes with a true one at IoU .5", {},
    )  # fmt: skip


def texts() -> Measured:
    """Confidence of words in transcripts."""
    data: Any = read(folder_of("crowdspeech") / "answers.csv", type="texts")
    known, rules = truth_of("crowdspeech", "task", "text"), TextRules()
    model = fit("texts", data)
    ends, right = np.append(0, np.cumsum(model.n_words_)), []
    for i, task in enumerate(model.tasks_.tolist()):
        words = [rules.words(word)[0] for word in model.words_[ends[i] : ends[i + 1]].tolist()]
        right += right_words(words, rules.words(known[task]))
    claims = Claims(model.word_confidence_, np.array(right, dtype=float))
    return Measured({"crowdspeech": claims}, "confidence of the word", "share of right words", {})


def masks(each: int = EACH, n_seeds: int = len(SEEDS)) -> Measured:
    """Expected IoU of masks against the IoU: boxes of pedestrians as masks, and simulated masks."""
    folder_of("pedestrian_boxes")
    data, truth = painted_boxes(each)
    found = {"pedestrian_boxes as masks": iou_claims(fit("masks", data), truth)}
    drawn = []
    for seed in range(n_seeds):
        made = simulate.masks(40, 5, simulate.PerTask(3), random_state=seed)
        whole = [simulate_mask(text, made.data) for text in made.truth.tolist()]
        drawn.append(iou_claims(fit("masks", made.data), whole))
    found["simulated masks"] = pooled(drawn)
    return Measured(found, "expected IoU of the mask", "IoU of the mask", {})


def simulate_mask(text: str, data: CrowdMasks) -> np.ndarray:
    """Return a true mask of a simulation as an array."""
    one = CrowdMasks.from_arrays([0], [0], [text])
    return one.dense(0)


def iou_claims(model: Any, truth: Sequence[np.ndarray]) -> Claims:
    """Return the expected and the actual IoU of each mask."""
    ends, shares = np.append(0, np.cumsum(model.n_runs_)), []
    for i, mask in enumerate(truth):
        found = dense_mask(model.mask_runs_[ends[i] : ends[i + 1]], *mask.shape)
        shares.append(mask_iou(mask, found))
    return Claims(model.confidence_, np.array(shares))


def painted_boxes(each: int = EACH) -> tuple[CrowdMasks, list[np.ndarray]]:
    """Return the boxes of workers and experts as masks of a fraction of the images."""
    data, _ = pedestrians()
    folder = folder_of("pedestrian_boxes")
    size = read_frame(folder / "images.csv").to_pylist()
    shape = {
        row["task"]: (int(row["height"]) // SMALLER, int(row["width"]) // SMALLER) for row in size
    }
    true = {task: np.zeros(shape[task], dtype=bool) for task in data.tasks.tolist()}
    for row in read_frame(folder / "truth.csv").to_pylist():
        _paint(true[row["task"]], [float(row[name]) for name in ("x", "y", "width", "height")])
    task, worker, mask = [], [], []
    for e in range(data.n_annotations):
        name = data.tasks[data.task[e]]
        if data.task[e] % each == 0 and true[name].any():
            one = np.zeros(shape[name], dtype=bool)
            for box in data.boxes[data.pointer[e] : data.pointer[e + 1]].tolist():
                _paint(one, box)
            task.append(name), worker.append(data.worker[e]), mask.append(one)
    made = CrowdMasks.from_arrays(task, worker, mask)
    return made, [true[name] for name in made.tasks.tolist()]


def _paint(mask: np.ndarray, box: Sequence[float]) -> None:
    """Fill a box, in pixels of the whole image, into its smaller mask."""
    x, y, width, height = (side / SMALLER for side in box)
    mask[round(y) : round(y + height), round(x) : round(x + width)] = True


KINDS: dict[str, Callable[[], Measured]] = {
    "labels": labels, "ordered": ordered, "numbers": numbers, "pairs": pairs,
    "rankings": rankings, "sequences": sequences, "sets": sets, "boxes": boxes, "same": same,
    "texts": texts, "masks": masks,
}  # fmt: skip


def run(
    kinds: dict[str, Callable[[], Measured]] | None = None, folder: Path = PICTURES
) -> list[Row]:
    """Return the rows of all kinds and write their pictures."""
    rows = []
    for kind, measure in (KINDS if kinds is None else kinds).items():
        print(f"... reliability of {kind}", file=sys.stderr, flush=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", WisecrowdWarning)
                found = measure()
        except FileNotFoundError as error:
            rows.append(Row(f"reliability, {kind}", "reported", str(error)))
            continue
        rows += rows_of(kind, found)
        series = {name: bins(one, by_level=found.by_level) for name, one in found.sets.items()}
        if len(series) > len(NUMBERS):
            every = pooled(list(found.sets.values()))
            series = {f"{len(found.sets)} real crowds": bins(every, by_level=found.by_level)}
        folder.mkdir(parents=True, exist_ok=True)
        text = picture(kind, series, found.claim, found.truth)
        (folder / f"{kind}.svg").write_text(text, encoding="utf-8")
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
