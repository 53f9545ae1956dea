"""Fits to packs of numbers and pairs: the same bits everywhere, as in memory up to rounding."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow.dataset as ds
import pytest

import wisecrowd as wc
from wisecrowd.aggregation import BradleyTerry, GaussianEM, Mean
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.io.tables import write_table
from wisecrowd.kinds.numbers.methods.facts import robust_spread
from wisecrowd.kinds.numbers.packed import number_of_bits, sortable_bits
from wisecrowd.kinds.pairs import packed as packed_pairs
from wisecrowd.packs.fit import fit_pack, shardable_methods

N_SHARDS = 4
GOLD = {"t3": 0.5, "t11": 1.0}


def number_table(seed=0):
    """Return numbers by six workers, one of whom always gives the same number."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(40), 4)
    worker = np.concatenate([rng.permutation(6)[:4] for _ in range(40)])
    value = rng.normal(size=40)[task] + 0.3 * worker + rng.normal(size=160) * (0.2 + 0.1 * worker)
    return {
        "task": np.array([f"t{i}" for i in task], dtype=object),
        "worker": np.array([f"w{j}" for j in worker], dtype=object),
        "value": np.where(worker == 5, 2.0, value),
        "weight": rng.choice([0.5, 1.0, 2.0], size=160),
    }


def pair_table(seed=0, n_workers=12):
    """Return votes of twelve workers on six items."""
    rng = np.random.default_rng(seed)
    left = rng.integers(6, size=200)
    right = (left + rng.integers(1, 6, size=200)) % 6
    win = rng.random(200) < 1 / (1 + np.exp(-0.5 * (left - right)))
    outcome = np.where(rng.random(200) < 0.1, 2, np.where(win, 0, 1))
    return {
        "worker": np.array([f"w{j}" for j in rng.integers(n_workers, size=200)], dtype=object),
        "left": np.array(list("abcdef"), dtype=object)[left],
        "right": np.array(list("abcdef"), dtype=object)[right],
        "outcome": np.array(["left", "right", "tie"], dtype=object)[outcome],
        "weight": rng.choice([0.5, 1.0, 3.0], size=200),
    }


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    """A folder with files of numbers and pairs, and their packs."""
    folder = tmp_path_factory.mktemp("kinds")
    write_table(folder / "numbers.csv", number_table())
    write_table(folder / "pairs.csv", pair_table())
    common = {"weight": "weight", "shards": N_SHARDS}
    wc.pack(folder / "numbers.csv", folder / "numbers.pack", type="numbers", **common)
    wc.pack(folder / "numbers.csv", folder / "gold.pack", type="numbers", gold=GOLD, **common)
    wc.pack(folder / "pairs.csv", folder / "pairs.pack", type="pairs", **common)
    return folder


def test_methods_for_every_kind():
    assert shardable_methods("numbers") == ["gaussian-em"]
    assert shardable_methods("pairs") == ["auto-pairs", "bradley-terry"]


@pytest.mark.parametrize("gain", [False, True])
@pytest.mark.parametrize(("name", "gold"), [("numbers", None), ("gold", GOLD)])
def test_numbers_agree_with_memory(name, gold, gain, packs, tmp_path):
    data = wc.read(packs / "numbers.csv", type="numbers", weight="weight")
    model = GaussianEM(gain=gain, max_iter=12).fit(data, gold=gold)
    found = fit_pack(
        GaussianEM(gain=gain, max_iter=12), packs / f"{name}.pack", tmp_path / "answers"
    )
    table = ds.dataset(tmp_path / "answers").to_table()
    place = {task: row for row, task in enumerate(table["task"].to_pylist())}
    order = [place[task] for task in model.tasks_.tolist()]
    columns = model.main_columns()
    low, high = columns.pop("low"), columns.pop("high")
    for column, wanted in columns.items():
        values = table[column].to_numpy()[order]
        if column == "task":
            assert values.tolist() == wanted.tolist()
        else:
            np.testing.assert_allclose(values, wanted, atol=1e-9)
    width = (table["high"].to_numpy() - table["low"].to_numpy())[order]
    assert "pack-intervals" in {finding.id for finding in found.fit.findings}
    if not gain:
        assert (width < high - low + 1e-12).all()  # without the error of each bias
        precision = np.full(data.n_tasks, 1 / model.truth_variance_[0])
        np.add.at(precision, data.task, data.weights / model.noise_[data.worker] ** 2)
        free = 2 * 1.959963984540054 * np.sqrt(1 / precision + model.level_variance_[0])
        np.testing.assert_allclose(width, np.where(model.variance_ > 0, free, 0), atol=1e-9)
    np.testing.assert_allclose(found.fit.history, model.history_, rtol=1e-9)
    workers = found.worker_columns()
    for column, wanted in model.worker_columns().items():
        if column not in ("worker", "n_labels"):
            np.testing.assert_allclose(workers[column], wanted, atol=1e-9)


def test_other_scales_in_a_pack_are_told_and_bounded_as_in_memory(tmp_path):
    task, worker = np.divmod(np.arange(80), 4)
    table = {
        "task": np.array([f"t{i:02}" for i in task], dtype=object),
        "worker": np.array([f"w{j}" for j in worker], dtype=object),
        "value": task * np.where(worker > 1, 1000.0, 1.0),
    }
    write_table(tmp_path / "a.csv", table)
    wc.pack(tmp_path / "a.csv", tmp_path / "p", type="numbers", shards=4)
    with pytest.warns(WisecrowdWarning, match="different scales"):
        found = fit_pack(GaussianEM(), tmp_path / "p", tmp_path / "answers")
    with pytest.warns(WisecrowdWarning, match="different scales"):
        model = GaussianEM().fit(wc.read(tmp_path / "a.csv", type="numbers"))
    told, wanted = (
        next(one for one in findings if one.id == "different-scales")
        for findings in (found.fit.findings, model.findings_)
    )
    assert told == wanted
    answers = ds.dataset(tmp_path / "answers").to_table().sort_by("task").to_pydict()
    np.testing.assert_allclose(answers["value"], model.main_columns()["value"], atol=1e-6)
    for column, sign in (("low", 1), ("high", -1)):
        wide = np.array(model.main_columns()[column])  # with the error of each bias
        assert (sign * (wide - np.array(answers[column])) <= 1e-6 * np.abs(wide)).all()
        assert (sign * np.array(answers[column]) <= sign * np.array(answers["value"])).all()


@pytest.mark.parametrize("cluster", ["auto", "tasks", "votes"])
@pytest.mark.parametrize("ties", ["half", "drop"])
def test_pairs_agree_with_memory(cluster, ties, packs, tmp_path, monkeypatch):
    monkeypatch.setattr(packed_pairs, "BLOCK", 30)  # several blocks of workers
    method = BradleyTerry(cluster=cluster, ties=ties)
    found = fit_pack(method, packs / "pairs.pack", tmp_path / "ranking")
    model = method.fit(wc.read(packs / "pairs.csv", type="pairs", weight="weight"))
    table = ds.dataset(tmp_path / "ranking").to_table()
    columns = model.main_columns()
    order = np.argsort(columns["rank"], kind="stable")
    for column, wanted in columns.items():
        values = table[column].to_numpy()
        if column == "item":
            assert values.tolist() == wanted[order].tolist()
        else:
            np.testing.assert_allclose(values, wanted[order], atol=1e-9)
    np.testing.assert_allclose(found.fit.answers.covariance, model.covariance_, atol=1e-9)
    np.testing.assert_allclose(found.fit.extra["tie_layer"], model.tie_layer_, atol=1e-9)
    np.testing.assert_allclose(found.fit.worker_accuracy, model.worker_accuracy_, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "method"), [("gold", GaussianEM(max_iter=3)), ("pairs", BradleyTerry())]
)
def test_executors_do_not_change_a_bit(name, method, packs, tmp_path):
    here = fit_pack(method, packs / f"{name}.pack", tmp_path / "here")
    with ThreadPoolExecutor(3) as executor:
        there = fit_pack(method, packs / f"{name}.pack", tmp_path / "there", executor=executor)
    assert there.fit.history == here.fit.history
    for part in (tmp_path / "here").iterdir():
        assert part.read_bytes() == (tmp_path / "there" / part.name).read_bytes()
    for column, values in here.worker_columns().items():
        np.testing.assert_array_equal(there.worker_columns()[column], values)


def test_quartiles_over_shards_are_exact():
    values = np.array([-1e300, -2.5, -0.0, 0.0, 1e-300, 3.0, 1e9])
    np.testing.assert_array_equal(number_of_bits(sortable_bits(values)), values)
    keys = sortable_bits(values)
    assert keys[2] == keys[3]
    assert (keys[1:] >= keys[:-1]).all()


def test_the_survey_of_a_pack_is_that_of_memory(packs, tmp_path):
    from wisecrowd.core.problem import Problem
    from wisecrowd.kinds.numbers.methods import facts as number_facts
    from wisecrowd.kinds.numbers.packed import PackedNumbers, survey
    from wisecrowd.packs.answers import AnswerParts, PartPlan
    from wisecrowd.packs.files import FilesEngine, Journal
    from wisecrowd.packs.pack import Pack

    crowd = PackedNumbers(Pack(packs / "numbers.pack"), AnswerParts(PartPlan()))
    problem = Problem(crowd, None, FilesEngine(Journal(tmp_path / "passes", resume=False)))
    facts = survey(crowd, problem.cut(1))
    data = wc.read(packs / "numbers.csv", type="numbers", weight="weight")
    assert facts.mean == pytest.approx(number_facts.overall_mean(data), rel=1e-12)
    assert facts.variance == pytest.approx(number_facts.overall_variance(data), rel=1e-12)
    wanted = number_facts.least_noise(data)
    assert robust_spread(data) > 0
    assert wanted.max() > wanted.min()  # one worker is constant
    np.testing.assert_allclose(facts.least_noise, wanted, rtol=1e-12)


def test_an_interrupted_fit_to_numbers_resumes(packs, tmp_path, monkeypatch):
    from wisecrowd.packs import files

    whole = fit_pack(GaussianEM(max_iter=5), packs / "gold.pack", tmp_path / "whole")
    calls, original = [], files.run_shard

    def interrupted(*task):
        calls.append(task)
        if len(calls) > 11 * N_SHARDS:  # the survey has seven passes
            raise KeyboardInterrupt
        return original(*task)

    with monkeypatch.context() as patch:
        patch.setattr(files, "run_shard", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fit_pack(GaussianEM(max_iter=5), packs / "gold.pack", tmp_path / "again")
    again = fit_pack(GaussianEM(max_iter=5), packs / "gold.pack", tmp_path / "again", resume=True)
    assert again.n_resumed == 11
    assert again.fit.history == whole.fit.history


def test_what_packs_of_other_kinds_refuse(packs, tmp_path):
    numbers, pairs = packs / "numbers.pack", packs / "pairs.pack"
    for method, pack, what in [
        (Mean(), numbers, "mean needs all labels in memory .* gaussian-em"),
        (BradleyTerry(), numbers, "takes pairs, and .* holds numbers; use gaussian-em"),
        (GaussianEM(scale="log"), numbers, "needs all numbers in memory"),
        (BradleyTerry(side=True), pairs, "need all votes in memory"),
    ]:
        with pytest.raises(ParameterError, match=what):
            fit_pack(method, pack)
    with pytest.raises(ParameterError, match="is for classes"):
        fit_pack(GaussianEM(), numbers, soft=True)
    with pytest.raises(DataError, match="has no items"):
        fit_pack(GaussianEM(max_iter=1), numbers).item_columns()


@pytest.mark.parametrize(
    ("name", "file", "value"),
    [("numbers", "cell", 99), ("numbers", "value", np.nan), ("pairs", "left", 77)],
)
def test_damaged_arrays_never_reach_compiled_code(name, file, value, packs, tmp_path):
    shutil.copytree(packs / f"{name}.pack", tmp_path / "copy")
    place = max(
        (tmp_path / "copy" / "shards").glob(f"*/{file}.npy"), key=lambda f: f.stat().st_size
    )
    array = np.load(place)
    array[-1] = value
    np.save(place, array)
    method = GaussianEM() if name == "numbers" else BradleyTerry()
    with pytest.raises(DataError, match=rf"{file}.npy of the pack .* is damaged"):
        fit_pack(method, tmp_path / "copy")


def test_numbers_of_a_pack_without_a_second_label_are_a_guess(tmp_path):
    table = {
        "task": range(40),
        "worker": [i % 7 for i in range(40)],
        "value": number_table()["value"][:40],
    }
    write_table(tmp_path / "a.csv", {name: np.array(column) for name, column in table.items()})
    wc.pack(tmp_path / "a.csv", tmp_path / "p", type="numbers", shards=4)
    with pytest.warns(WisecrowdWarning, match="No task has two labels"):
        found = fit_pack(GaussianEM(), tmp_path / "p", tmp_path / "answers")
    assert "one-label-per-task" in [one.id for one in found.fit.findings]
    answers = ds.dataset(tmp_path / "answers").to_table().to_pydict()
    half = (np.array(answers["high"]) - np.array(answers["low"])) / 2
    assert (half >= 1.95 * np.sqrt(np.var(table["value"]) / 2)).all()
