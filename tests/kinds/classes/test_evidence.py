"""Labels that are not classes are refused, and crowds of classes never are."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd import CrowdLabels, aggregate
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.audit import audit_crowd
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.option_spelling import shell_spelling
from wisecrowd.kinds import kind_of_columns
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.evidence import abstention_hint, is_abstention, look_of, looks_long
from wisecrowd.kinds.classes.families.doubt import unsupported_finding

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


SHAPES = [(30, 5, 3), (30, 20, 5), (100, 1, 1), (100, 20, 1), (100, 100, 3), (500, 50, 10)]


def long_rows(n_tasks, n_workers, per_task, n_classes=4, *, seed=0, shuffle=False):
    """Return (task, worker, label) rows of integer ids that all start at 0."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), per_task)
    worker = [rng.choice(n_workers, per_task, replace=False) for _ in range(n_tasks)]
    truth = rng.integers(0, n_classes, n_tasks)
    right = rng.random(len(task)) < 0.8
    label = np.where(right, truth[task], rng.integers(0, n_classes, len(task)))
    rows = np.column_stack([task, np.concatenate(worker), label])
    return rows[rng.permutation(len(rows))] if shuffle else rows


def named(rows):
    """Return rows with text ids."""
    prefixes = np.array(["task-", "worker-", "class-"], dtype=object)
    return prefixes + rows.astype(str).astype(object)


def matrix(n_tasks, n_classes, accuracy, *, skew=0.0, seed=0):
    """Return labels of three workers, each right with its own probability."""
    rng = np.random.default_rng(seed)
    share = np.arange(1, n_classes + 1) ** -skew
    truth = rng.choice(n_classes, n_tasks, p=share / share.sum())
    guesses = rng.integers(0, n_classes, (n_tasks, 3))
    right = rng.random((n_tasks, 3)) < np.array(accuracy)
    return np.where(right, truth[:, None], guesses)


# ------------------------------------------------------------------------------ long tables


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_long_tables_of_integer_ids_are_found(shape, n_classes, shuffle):
    for seed in range(5):
        rows = long_rows(*shape, n_classes, seed=seed, shuffle=shuffle)
        for columns in ([0, 1, 2], [1, 0, 2]):
            assert looks_long(rows[:, columns]), seed


@pytest.mark.parametrize("shape", [*SHAPES, (4, 3, 3), (5, 3, 2)])
def test_long_tables_of_text_ids_are_found(shape):
    for seed in range(5):
        rows = named(long_rows(*shape, seed=seed))
        assert looks_long(rows), seed
        assert looks_long(rows.astype(str)), seed


@pytest.mark.parametrize("seed", range(5))
def test_a_fourth_column_of_times_does_not_hide_a_long_table(seed):
    rows = long_rows(60, 10, 4, seed=seed)
    times = 1_700_000_000 + np.arange(len(rows))
    assert looks_long(np.column_stack([rows, times]))
    assert looks_long(np.column_stack([named(rows), times.astype(object)]))


def test_a_frame_of_mixed_columns_is_refused_with_both_readings():
    frame = pd.DataFrame(long_rows(40, 5, 3), columns=["task", "worker", "label"])
    frame["worker"] = [f"w{j}" for j in frame["worker"]]
    message = (
        r"120 × 3 array.*CrowdLabels.from_arrays\(a\[:, 0\], a\[:, 1\], a\[:, 2\]\).*"
        r"CrowdLabels.from_matrix\(a\)"
    )
    for given in (frame.to_numpy(), frame.astype(str).to_numpy(dtype=str)):
        with pytest.raises(DataError, match=message):
            MajorityVote().fit(given)
    a = frame.to_numpy()
    assert CrowdLabels.from_arrays(a[:, 0], a[:, 1], a[:, 2]).n_tasks == 40


def test_a_list_of_rows_is_refused_with_both_readings():
    rows = [tuple(row) for row in named(long_rows(10, 4, 3)).tolist()]
    with pytest.raises(DataError, match=r"from_arrays\(\*zip\(\*rows\)\).*from_matrix\(rows\)"):
        as_crowd_labels(rows)
    assert CrowdLabels.from_arrays(*zip(*rows, strict=True)).n_tasks == 10


@pytest.mark.parametrize("n_workers", [4, 10])
def test_large_designs_are_sampled(n_workers):
    rows = long_rows(20_000, n_workers, n_workers // 2, 3)
    for given in (rows, rows.tolist()):
        with pytest.raises(DataError, match="looks like a long table"):
            as_crowd_labels(given)
    labels = matrix(50_000, 5, (0.8, 0.7, 0.6))
    assert as_crowd_labels(labels).n_workers == 3


def test_values_that_cannot_be_ids_are_left_to_the_gate():
    rows = np.array([["t1", "ann", {"a": 1}]] * 6, dtype=object)
    with pytest.raises(DataError, match="label"):
        as_crowd_labels(rows)


def test_a_declared_matrix_is_not_doubted():
    rows = long_rows(30, 20, 5)
    assert CrowdLabels.from_matrix(rows, type="labels").n_workers == 3


# --------------------------------------------------------------------------------- matrices


@pytest.mark.parametrize("skew", [0.0, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3, 5, 10, 30, 100])
@pytest.mark.parametrize("n_tasks", [3, 4, 6, 10, 20, 50, 200, 1000])
def test_matrices_of_three_workers_are_not_doubted(n_tasks, n_classes, skew):
    for accuracy in ((0.9, 0.9, 0.9), (0.6, 0.6, 0.6), (0.9, 0.8, 0.0), (0.0, 0.0, 0.0)):
        for seed in range(5):
            labels = matrix(n_tasks, n_classes, accuracy, skew=skew, seed=seed)
            assert not looks_long(labels), (accuracy, seed)
        assert not looks_long(labels.astype(str).astype(object)), accuracy


@pytest.mark.parametrize("n_classes", [2, 10])
def test_spammers_gaps_and_sorted_tasks_do_not_make_a_long_table(n_classes):
    for seed in range(10):
        labels = matrix(100, n_classes, (0.8, 0.7, 0.6), seed=seed).astype(float)
        constant = labels.copy()
        constant[:, 2] = 0
        gaps = np.where(np.random.default_rng(seed).random(labels.shape) < 0.4, np.nan, labels)
        for given in (constant, gaps, labels[np.argsort(labels[:, 0])]):
            assert not looks_long(given), seed
    assert not looks_long(np.tile([0, 1, 2], (50, 1)))  # every worker has a favourite class


def test_other_shapes_are_left_alone():
    rows = long_rows(30, 20, 5)
    assert as_crowd_labels(rows[:, [2, 2]]).n_workers == 2
    assert as_crowd_labels(np.zeros((2, 3), dtype=int)).n_workers == 3


# ---------------------------------------------------------------------------- ids in a matrix


def with_ids(first, *, n_classes=3):
    labels = matrix(len(first), n_classes, (0.8, 0.8, 0.8))
    rows = np.empty((len(first), 4), dtype=object)
    rows[:, 0], rows[:, 1:] = first, labels
    return rows


@pytest.mark.parametrize(
    "rows",
    [
        with_ids(range(10)),
        with_ids(range(10)).astype(int),
        with_ids(range(1, 11)).astype(float),
        with_ids([f"essay {k}" for k in range(10)]),
        with_ids([105, 101, 120, 107, 111, 108]).astype(int),
        with_ids(range(10)).tolist(),
    ],
    ids=["objects", "integers", "floats", "texts", "unordered", "lists"],
)
def test_a_first_column_of_task_ids_is_no_worker(rows):
    with pytest.raises(DataError, match=r"The first column of the \d+ × 4 array .* tasks=a\[:, 0]"):
        MajorityVote().fit(rows)
    a = np.array(rows, dtype=object)
    assert CrowdLabels.from_matrix(a[:, 1:], tasks=a[:, 0]).n_workers == 3


def test_numbers_of_rows_are_labels_if_the_user_says_so():
    assert CrowdLabels.from_matrix(with_ids(range(10))).n_workers == 4


@pytest.mark.parametrize(
    "rows",
    [
        matrix(12, 10, (0.9, 0.9, 0.9)),
        np.array([[0, 0, 1, 0], [1, 1, 1, 1], [2, 2, 1, 2], [3, 3, 2, 3], [4, 4, 2, 4]]),
        np.array([[0, 0, 1, 0], [1, 1, 1, 1], [2, 1, 1, 1], [3, 1, 0, 1]]),
        np.array([[0, 0, 1, 0], [2, 1, 1, 1], [1, 2, 1, 1], [4, 1, 0, 1], [3, 3, 1, 1]]),
    ],
    ids=["many classes", "a perfect crowd", "few rows", "shared values"],
)
def test_workers_with_different_labels_are_no_ids(rows):
    assert MajorityVote().fit(rows).labels_.shape == (len(rows),)


LIKE = [
    "unsure", "Unsure", "UNSURE", "not sure", "not_sure", "don't know", "dont_know", "Don’t know",
    "I don't know", "do-not-know", "idk", "n/a", "N.A.", "NA", "not applicable",
    "none of the above", "None of these", "cannot tell", "can't tell", "cant_tell",
    "can not say", "skip", "skipped", "unknown", "undecided", "no opinion",
    "prefer not to say", "abstain",
]  # fmt: skip
UNLIKE = [
    "other", "none", "yes", "no", "maybe", "neutral", "Nathan", "surely", "pass", "fail",
    "unknown planet", "skipper", "sure", "knows", "a", "", 0, 1, None, 2.5, True,
]  # fmt: skip


@pytest.mark.parametrize("name", LIKE)
def test_abstentions(name):
    assert is_abstention(name)


@pytest.mark.parametrize("name", UNLIKE)
def test_answers(name):
    assert not is_abstention(name)


def test_the_hint_is_an_option_that_exists():
    assert abstention_hint(["not sure"]) == "abstain=['not sure']"
    with shell_spelling():
        assert abstention_hint(["not sure", "n/a"]) == "--abstain 'not sure' --abstain n/a"


def crowd(unsure="unsure"):
    rng = np.random.default_rng(0)
    label = np.array(["yes", "no", unsure], dtype=object)[rng.choice(3, 120, p=[0.5, 0.3, 0.2])]
    return CrowdLabels.from_arrays(np.repeat(np.arange(30), 4), np.tile(np.arange(4), 30), label)


def test_fits_and_audits_have_a_low_finding():
    fit = DawidSkene().fit(crowd())
    (finding,) = (found for found in fit.findings_ if found.id == "abstention-class")
    assert (finding.severity, finding.affected) == ("low", ("unsure",))
    assert "abstain=['unsure']" in finding.remedy
    assert "abstention-class" in {
        found.id for found in audit_crowd(crowd(), parts=["fit"]).findings
    }
    assert finding.score == pytest.approx(np.mean(crowd().label == 1))


@pytest.mark.parametrize("name", ["other", "maybe"])
def test_other_names_have_none(name):
    found = DawidSkene().fit(crowd(name)).findings_
    assert "abstention-class" not in {finding.id for finding in found}


def test_an_unsupported_class_is_named():
    labels = crowd()
    unsupported = labels.classes == "unsure"
    (finding,) = unsupported_finding(labels, [], unsupported)
    assert "'unsure' looks like an abstention" in finding.remedy
    assert "abstain=['unsure']" in finding.remedy
    (finding,) = unsupported_finding(labels, [], labels.classes == "no")
    assert "looks like" not in finding.remedy
    assert "abstain=['no']" in finding.remedy


def test_what_is_declared_does_not_win():
    labels = crowd()
    rows = labels.to_dict()
    table = aggregate(
        CrowdLabels.from_arrays(rows["task"], rows["worker"], rows["label"], abstain=["unsure"])
    )
    assert "unsure" not in table["label"].to_numpy().tolist()
