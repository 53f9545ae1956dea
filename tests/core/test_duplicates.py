"""Repeated (task, worker) pairs: few count once, many that differ are refused."""

import warnings

import numpy as np
import pytest

from wisecrowd import CrowdLabels, read
from wisecrowd.core.exceptions import DataError, WisecrowdWarning
from wisecrowd.core.messages.option_spelling import shell_spelling


def crowd(n_tasks=40, n_workers=5, seed=0):
    """Return task, worker and label columns in which every pair occurs once."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), n_workers)
    worker = np.tile(np.arange(n_workers), n_tasks)
    return task, worker, rng.integers(0, 4, len(task))


def with_repeats(share, *, different, seed=0):
    """Return the crowd with a share of its rows given again, with another or the same label."""
    columns = crowd(seed=seed)
    again = np.random.default_rng(seed + 1).random(len(columns[0])) < share
    extra = [column[again] for column in columns]
    if different:
        extra[2] = (extra[2] + 1) % 4
    return [np.concatenate(parts) for parts in zip(columns, extra, strict=True)]


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_many_repeats_with_different_labels_are_refused_with_three_remedies(share, seed):
    columns = with_repeats(share, different=True, seed=seed)
    with pytest.raises(DataError) as error:
        CrowdLabels.from_arrays(*columns)
    message = str(error.value)
    for words in ("different labels", "rows ", "duplicates='last'", "duplicates='keep'"):
        assert words in message
    with shell_spelling(), pytest.raises(DataError, match=r"--duplicates last.*--duplicates keep"):
        CrowdLabels.from_arrays(*columns)


@pytest.mark.parametrize("seed", range(3))
def test_multi_label_rows_are_refused_however_small_the_table(seed):
    rng = np.random.default_rng(seed)
    rows = [
        (task, worker, label)
        for task in range(4)
        for worker in "abc"
        for label in rng.choice(list("vwxyz"), 2, replace=False)
    ]
    with pytest.raises(DataError, match="different labels"):
        CrowdLabels.from_arrays(*zip(*rows, strict=True))


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_identical_repeats_count_once_with_a_warning(share):
    columns = with_repeats(share, different=False)
    with pytest.warns(WisecrowdWarning, match="repeat a .task, worker. pair"):
        labels = CrowdLabels.from_arrays(*columns)
    assert labels.n_annotations == 200
    assert "the last in the table counts" in labels.notes[-1]


def test_few_different_repeats_count_once_with_a_warning():
    columns = with_repeats(0.02, different=True)
    with pytest.warns(WisecrowdWarning, match="repeat a .task, worker. pair"):
        assert CrowdLabels.from_arrays(*columns).n_annotations == 200


@pytest.mark.parametrize(("policy", "n"), [("last", 200), ("keep", 400)])
def test_a_chosen_policy_is_obeyed_silently(policy, n):
    columns = with_repeats(1.0, different=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = CrowdLabels.from_arrays(*columns, duplicates=policy)
    assert labels.n_annotations == n
    assert labels.notes == ()


def test_timestamps_alone_do_not_make_many_repeats_corrections():
    # A log of clicks has times too: several labels per task, seconds apart.
    columns = with_repeats(1.0, different=True)
    when = np.arange(len(columns[0])).astype("datetime64[s]")
    with pytest.raises(DataError, match="different labels"):
        CrowdLabels.from_arrays(*columns, timestamp=when)
    labels = CrowdLabels.from_arrays(*columns, timestamp=when, duplicates="last")
    assert labels.n_annotations == 200


@pytest.mark.data
@pytest.mark.parametrize("name", ["zc_us", "reading_difficulty"])
def test_real_repeats_that_mostly_agree_count_once(name, data_directory):
    with pytest.warns(WisecrowdWarning, match="repeat a .task, worker. pair"):
        read(data_directory / name / "answers.csv", type="labels")
