"""Labels that are not classes are refused, and crowds of classes never are."""

import re

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd import CrowdLabels
from wisecrowd.core.class_evidence import kind_of_columns, look_of
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.option_spelling import shell_spelling

CATEGORICAL = [
    "bluebird", "cf", "cifar10n", "compas_dressel_race", "dog", "face", "labelme", "leaves9",
    "music_genre", "product", "rte", "sentiment_polarity", "sp_amt", "temp", "trec",
    "truthfulness_s6", "valence5", "zc_us",
]  # fmt: skip


def design(n_tasks, per_task, n_workers=30, seed=0):
    """Return the task and the worker of every row: each task goes to ``per_task`` workers."""
    rng = np.random.default_rng(seed)
    workers = [rng.choice(n_workers, per_task, replace=False) for _ in range(n_tasks)]
    return np.repeat(np.arange(n_tasks), per_task), np.concatenate(workers)


def class_crowd(n_tasks, per_task, n_classes, accuracy, *, skew=0.0, seed=0):
    """Return the codes of a crowd of classes; mistakes are uniform, classes skewed if wanted."""
    rng = np.random.default_rng(seed)
    share = np.arange(1, n_classes + 1) ** -skew
    truth = rng.choice(n_classes, n_tasks, p=share / share.sum())
    task, worker = design(n_tasks, per_task, seed=seed)
    right = rng.random(len(task)) < accuracy
    return task, worker, np.where(right, truth[task], rng.integers(0, n_classes, len(task)))


def looks(task, label):
    classes, codes = np.unique(label, return_inverse=True)
    return look_of(task.astype(np.int32), codes.astype(np.int32), classes)


# ------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("digits", [1, 2, 6])
def test_fractional_numbers_are_refused_with_the_row(digits, seed):
    rng = np.random.default_rng(seed)
    task, worker = design(30, 4, seed=seed)
    label = np.round(rng.normal(3, 1, len(task)), digits)
    for given in (label, label.astype(str)):
        with pytest.raises(DataError, match=r"fractional numbers, first .* in row \d+: .*numbers"):
            CrowdLabels.from_arrays(task, worker, given)
    assert CrowdLabels.from_arrays(task, worker, label, type="labels").n_classes > 2
    assert CrowdLabels.from_arrays(task, worker, label, classes=np.unique(label)).n_tasks == 30


def test_a_fraction_among_whole_numbers_is_found_in_its_row():
    task, worker, label = class_crowd(20, 4, 5, 0.8)
    label = label.astype(float)
    label[6] = 2.5
    with pytest.raises(DataError, match=r"first 2\.5 in row 7"):
        CrowdLabels.from_arrays(task, worker, label)
    texts = label.astype(str).astype(object)
    texts[:3] = "unknown"
    with pytest.raises(DataError, match=r"first '2\.5' in row 7"):
        CrowdLabels.from_arrays(task, worker, texts)
    # An abstention is not a label, so it does not count as one.
    assert CrowdLabels.from_arrays(task, worker, label, abstain=2.5).n_classes == 5


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n_tasks", "per_task"), [(20, 3), (60, 10), (200, 3)])
def test_whole_numbers_on_a_long_scale_are_refused(n_tasks, per_task, seed):
    rng = np.random.default_rng(seed)
    task, worker = design(n_tasks, per_task, seed=seed)
    truth = rng.uniform(0, 400, n_tasks)
    label = np.round(truth[task] + rng.normal(0, 40, len(task))).astype(int)
    with pytest.raises(DataError, match=r"different values in .* hardly ever agree: .*numbers"):
        CrowdLabels.from_arrays(task, worker, label)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n_tasks", "per_task"), [(20, 3), (200, 3), (400, 1)])
def test_texts_are_refused(n_tasks, per_task, seed):
    rng = np.random.default_rng(seed)
    words = np.array(list("abcdefghijklmnop"))
    task, worker = design(n_tasks, per_task, seed=seed)
    label = [" ".join(rng.choice(words, 8)) for _ in task]
    with pytest.raises(DataError, match=r"they look like texts"):
        CrowdLabels.from_arrays(task, worker, label)
    assert CrowdLabels.from_arrays(task, worker, label, type="labels").n_classes > 30


def test_every_way_in_refuses_and_takes_the_declaration(tmp_path):
    rng = np.random.default_rng(0)
    task, worker = design(40, 3)
    frame = pd.DataFrame({"task": task, "worker": worker, "label": rng.random(len(task)).round(3)})
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    matrix = rng.random((40, 5)).round(3)
    for attempt in (
        lambda **kind: wc.read(path, **kind),
        lambda **kind: CrowdLabels.from_frame(frame, **kind),
        lambda **kind: CrowdLabels.from_matrix(matrix, **kind),
        lambda **kind: wc.aggregate(frame, "majority-vote", **kind),
    ):
        with pytest.raises(DataError, match=r"give type='numbers', or give type='labels'"):
            attempt()
        attempt(type="labels")
    with shell_spelling(), pytest.raises(DataError, match=r"row \d+ of .*a\.csv.*--type labels"):
        wc.read(path)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ParameterError, match="type is 'numbers', and CrowdLabels hold classes"):
        CrowdLabels.from_arrays([0], [0], [1.5], type="numbers")


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        (("x", "y", "width", "height"), "boxes"),
        (("xmin", "ymin", "xmax", "ymax"), "boxes"),
        (("left", "right"), "pairs"),
        (("start", "end"), "sequences"),
    ],
)
def test_a_table_of_another_kind_is_named_by_its_columns(columns, kind):
    assert kind_of_columns(["task", *columns]) == (kind, columns)
    task, worker = design(30, 3)
    values = np.random.default_rng(0).random((len(columns), len(task))).round(3)
    table = {"task": task, "worker": worker} | dict(zip(columns, values, strict=True))
    with pytest.raises(DataError, match=f"No column looks like the label.*look like {kind}"):
        CrowdLabels.from_frame(pd.DataFrame(table))
    with pytest.raises(DataError, match=f"they look like {kind}"):
        CrowdLabels.from_frame(pd.DataFrame(table), label=columns[0])


def test_columns_of_another_kind_do_not_matter_beside_classes():
    task, worker, label = class_crowd(30, 3, 2, 0.8)
    table = {"task": task, "worker": worker, "label": label, "left": task, "right": task + 1}
    assert CrowdLabels.from_frame(pd.DataFrame(table)).n_classes == 2


# ---------------------------------------------------------------------------- what never is refused


@pytest.mark.parametrize("skew", [0.0, 1.0])
@pytest.mark.parametrize("accuracy", [0.5, 0.8])
@pytest.mark.parametrize("n_classes", [5, 30, 100, 1000])
@pytest.mark.parametrize("per_task", [1, 2, 5, 20])
def test_crowds_of_classes_are_accepted(per_task, n_classes, accuracy, skew):
    for n_tasks in (4, 10, 50, 200):
        for seed in range(3):
            task, _, label = class_crowd(
                n_tasks, per_task, n_classes, accuracy, skew=skew, seed=seed
            )
            assert looks(task, label) is None, (n_tasks, seed)


@pytest.mark.parametrize("seed", range(5))
def test_little_evidence_is_accepted(seed):
    rng = np.random.default_rng(seed)
    for n_tasks, per_task in ((4, 3), (12, 4), (16, 3), (100, 1)):
        task, _ = design(n_tasks, per_task, seed=seed)
        assert looks(task, rng.permutation(len(task))) is None


@pytest.mark.parametrize("n_classes", [2, 5, 11])
def test_ratings_and_random_workers_are_accepted(n_classes):
    rng = np.random.default_rng(0)
    task, worker = design(200, 5)
    ratings = np.clip(np.round(rng.normal(n_classes / 2, n_classes / 3, len(task))), 1, n_classes)
    assert looks(task, ratings) is None
    assert looks(task, rng.integers(0, n_classes, len(task))) is None
    assert CrowdLabels.from_arrays(task, worker, ratings).classes.dtype.kind == "i"


def test_names_with_digits_are_classes():
    task, worker, label = class_crowd(60, 4, 6, 0.7)
    for names in (["v1.2", "v1.3"], ["1.2.3", "1.2.4"], ["2,5", "1,5"], ["0.5 mg", "1.5 mg"]):
        given = np.array(names)[label % 2]
        assert CrowdLabels.from_arrays(task, worker, given).n_classes == 2


# --------------------------------------------------------------------------------- real data sets


@pytest.mark.data
@pytest.mark.filterwarnings("ignore:.*repeat a .task, worker. pair")
@pytest.mark.parametrize("name", CATEGORICAL)
def test_real_classes_are_accepted(name, data_directory):
    assert wc.read(data_directory / name / "answers.csv").n_classes <= 10


@pytest.mark.data
def test_real_comparisons_are_pairs(data_directory):
    votes = wc.read(data_directory / "llmfao" / "answers.csv")
    assert isinstance(votes, wc.CrowdPairs)
    assert (votes.n_items, votes.n_annotations) == (59, 8931)
    with pytest.raises(DataError, match="Item '267' is compared with itself in rows 11136, 11137"):
        wc.read(data_directory / "reading_difficulty" / "answers.csv")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "label", "kind"),
    [
        ("movie_reviews", None, "numbers"),
        ("emotion_numeric", None, "numbers"),
        ("dots", None, "numbers"),
        ("crowdspeech", "text", "texts"),
        ("pedestrian_boxes", "x", "boxes"),
    ],
)
def test_real_numbers_texts_and_boxes_are_refused(name, label, kind, data_directory):
    path = data_directory / name / "answers.csv"
    with pytest.raises(DataError, match=f"they look like {kind}"):
        wc.read(path, label=label)
    table = pd.read_csv(path)
    with pytest.raises(DataError, match=re.escape(f"they look like {kind}")):
        CrowdLabels.from_frame(table, label=label)


def test_nearly_a_million_labels_are_looked_at_quickly():
    task, _, label = class_crowd(30_000, 10, 100, 0.6)
    assert looks(task, label) is None
    numbers = np.random.default_rng(0).integers(0, 100_000, len(task))
    assert looks(task, numbers).kind == "numbers"


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (["cat", "dog", "cat|dog", "dog|cat"], "sets"),
        (["cat", "dog", "bird", "cat | dog", "bird|dog"], "sets"),
        (['["cat"]', '["cat", "dog"]', "[]"], "sets"),
        (["animal|cat", "animal|dog", "animal", "plant|tree"], None),  # paths in a tree of classes
        (["yes|no", "yes", "no"], None),  # one such name is an odd name
        (["a|b", "c|d"], None),
        (["[1]", "one"], None),
    ],
)
def test_sets_are_recognised(given, kind):
    classes = np.array(sorted(given), dtype=object)
    codes = np.arange(len(classes), dtype=np.int32)
    look = look_of(codes, codes, classes)
    assert (None if look is None else look.kind) == kind


def test_sets_are_refused_as_classes():
    values = ["cat", "dog", "cat|dog", "dog|cat"]
    with pytest.raises(DataError, match=r"lists of classes, such as 'cat\|dog'"):
        CrowdLabels.from_arrays([1, 1, 2, 2], list("abab"), values)
    assert CrowdLabels.from_arrays([1, 1, 2, 2], list("abab"), values, type="labels").n_classes == 4
