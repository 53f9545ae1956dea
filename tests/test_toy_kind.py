"""A kind that is defined here alone goes all the way: files, fits, models, commands and checks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import Context
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import wisecrowd as wc
from wisecrowd.cli.main import run
from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.annotations import Annotations, Payload
from wisecrowd.core.answers import Answers
from wisecrowd.core.exceptions import DataError, NotFittedError, ParameterError, WisecrowdWarning
from wisecrowd.core.kinds import Kind, Symmetry, kind_of, with_kind
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.testing import check_aggregator, maker
from wisecrowd.testing.invariance import check_integer_weights

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ToyNumbers(Annotations):
    """One number per annotation."""

    payload: ClassVar[tuple[Payload, ...]] = (Payload("value", usual=("value", "score")),)
    value: Floats


@dataclass(frozen=True, eq=False)
class ToyNumberAnswers(Answers):
    """One number per task, and its variance."""

    values: Floats
    variance: Floats

    shown: ClassVar[tuple[str, ...]] = ("value", "variance")
    saves: ClassVar[Mapping[str, Saved]] = {
        "values_": SavedArray("N"),
        "variance_": SavedArray("N", "amount"),
        "worker_bias_": SavedArray("J"),
    }

    @classmethod
    def of_fit(cls, learned, rows):
        return cls(learned["values_"][rows], learned["variance_"][rows])

    def attributes(self, known):
        return {"values_": self.values, "variance_": self.variance}

    def score(self, truth, data, known):
        wanted = np.array([truth[task] for task in data.tasks.tolist()])
        return -float(np.mean((self.values - wanted) ** 2))

    @classmethod
    def task_columns(cls, learned):
        return {"value": learned["values_"], "variance": learned["variance_"]}

    @classmethod
    def worker_columns(cls, learned):
        return {"bias": learned["worker_bias_"]}


def weight_of(data: ToyNumbers) -> Floats:
    return np.ones(data.n_annotations) if data.weight is None else data.weight


@dataclass(eq=False, repr=False, kw_only=True)
class ToyMean(Aggregator):
    """The weighted mean of the numbers of each task.

    Use it when workers make independent mistakes of one size.

    Parameters
    ----------
    pseudo_count : float
        Annotations at the mean of all, added to every task.

    References
    ----------
    C. F. Gauss (1809).

    Examples
    --------
    >>> ToyMean(pseudo_count=1.0).pseudo_count
    1.0
    """

    pseudo_count: float = 0.0

    takes: ClassVar[str] = "toy-numbers"
    promises: ClassVar[Tags] = Tags()

    def _fit(self, problem: Any) -> Fit:
        answers, data = self._predict(problem), problem.data
        error, weight = data.value - answers.values[data.task], weight_of(data)
        count = np.maximum(np.bincount(data.worker, weight, data.n_workers), 1e-300)
        bias = np.bincount(data.worker, weight * error, data.n_workers) / count
        return Fit(answers, extra={"worker_bias": bias})

    def _predict(self, problem: Any) -> ToyNumberAnswers:
        data, weight = problem.data, weight_of(problem.data)
        overall = np.average(data.value, weights=weight)
        total = np.bincount(data.task, weight, data.n_tasks) + self.pseudo_count
        count = np.maximum(total, 1e-300)
        sums = np.bincount(data.task, weight * (data.value - overall), data.n_tasks)
        values = overall + sums / count
        spread = np.bincount(data.task, weight * (data.value - values[data.task]) ** 2,
                             data.n_tasks)  # fmt: skip
        return ToyNumberAnswers(values, spread / count)


def crowd(make: Any, seed: int) -> ToyNumbers:
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(30), 4)
    worker = np.concatenate([rng.choice(7, 4, replace=False) for _ in range(30)])
    value = rng.normal(task, 1.0)
    names = [np.array([f"{role}-{code:03d}" for code in codes], object)
             for role, codes in (("task", task), ("worker", worker))]  # fmt: skip
    return ToyNumbers.from_arrays(*names, value)


def scaled(data: ToyNumbers) -> ToyNumbers:
    return replace(data, value=3.0 - 2.0 * data.value)


TOY = Kind(
    name="toy-numbers",
    container=ToyNumbers,
    answers=ToyNumberAnswers,
    methods={"ToyMean": __name__},
    default_method="toy-mean",
    example=crowd,
    symmetries=(
        Symmetry(
            name="scale and shift",
            change=scaled,
            expected=lambda learned: {
                "values_": 3.0 - 2.0 * learned["values_"],
                "variance_": 4.0 * learned["variance_"],
                "worker_bias_": -2.0 * learned["worker_bias_"],
            },
        ),
    ),
)


@pytest.fixture(scope="module", autouse=True)
def _registered():
    with with_kind(TOY):
        yield


COLUMNS = (["t1", "t1", "t2"], ["ann", "bob", "ann"], [1.0, 2.0, 5.0])


def test_a_fit_publishes_the_answers_of_its_kind():
    fitted = ToyMean().fit(COLUMNS)
    assert fitted.values_.tolist() == [1.5, 5.0]
    assert fitted.variance_.tolist() == [0.25, 0.0]
    assert fitted.worker_bias_.tolist() == [-0.25, 0.5]
    assert list(fitted.task_columns()) == ["task", "value", "variance", "n_labels"]
    assert list(fitted.worker_columns()) == ["worker", "n_labels", "bias"]
    assert fitted.fit_predict(COLUMNS).tolist() == [1.5, 5.0]
    assert not hasattr(fitted, "probas_")
    assert fitted.findings_ == ()
    with pytest.raises(NotFittedError):
        ToyMean().values_  # noqa: B018 - asking is what is tested


def test_predictions_and_scores_are_those_of_the_kind():
    fitted = ToyMean().fit(COLUMNS)
    new = (["x", "x"], ["ann", "bob"], [4.0, 8.0])
    assert fitted.predict(new).tolist() == [6.0]
    assert fitted.score(new, {"x": 5.0}) == -1.0
    with pytest.raises(DataError, match="ToyMean has no probabilities; use predict"):
        fitted.predict_proba(new)
    stranger = (["x"], ["cem"], [4.0])
    for attempt in (lambda: fitted.predict(stranger), lambda: fitted.score(stranger, {"x": 4.0})):
        with pytest.warns(WisecrowdWarning, match="1 of 1 workers, such as 'cem'") as warned:
            attempt()
        assert warned[0].filename == __file__  # the user's line, not one of the library


def test_what_the_kind_does_not_have_is_refused():
    for options in ({"gold": {"t1": 1.0}}, {"task_prior": [1.0]}, {"init": [1.0]}):
        with pytest.raises(ParameterError, match="Methods for toy-numbers take"):
            ToyMean().fit(COLUMNS, **options)
    labels = wc.CrowdLabels.from_arrays([1], [1], ["a"])
    with pytest.raises(DataError, match="The data are CrowdLabels, and ToyNumbers are needed"):
        ToyMean().fit(labels)
    with pytest.raises(DataError, match="The data are ToyNumbers, and CrowdLabels are needed"):
        wc.aggregation.MajorityVote().fit(ToyNumbers.from_arrays(*COLUMNS))


def test_the_short_way_and_the_list_of_methods_know_the_kind():
    table = wc.aggregate(COLUMNS, "toy-mean", pseudo_count=0.0)
    assert table.to_pydict() == {"task": ["t1", "t2"], "value": [1.5, 5.0], "variance": [0.25, 0.0]}
    assert wc.aggregate(COLUMNS, type="toy-numbers").equals(table)  # its default method
    with pytest.raises(ParameterError, match="dawid-skene takes labels, and type is 'toy-numbers'"):
        wc.aggregate(COLUMNS, "dawid-skene", type="toy-numbers")
    assert [method.name for method in wc.methods(type="toy-numbers")] == ["toy-mean"]
    assert "toy-mean" not in [method.name for method in wc.methods(type="labels")]
    with pytest.raises(ParameterError, match=r"only labels, .*toy-numbers.* are supported"):
        wc.methods(type="numbres")


def test_a_kind_is_known_by_one_name_inside_its_block():
    with pytest.raises(ParameterError, match="There is a kind 'toy-numbers' already"):
        with_kind(TOY).__enter__()
    with pytest.raises(ParameterError, match="There is a kind 'labels' already"):
        with_kind(replace(TOY, name="labels")).__enter__()
    with with_kind(replace(TOY, name="toy-grades")):
        assert [method.name for method in wc.methods(type="toy-grades")] == ["toy-mean"]
    with pytest.raises(ParameterError, match="type is 'toy-grades'"):
        wc.methods(type="toy-grades")


@pytest.fixture
def unregistered():
    """Return a function that calls another one where the kind is not known."""
    return lambda function, *given, **named: Context().run(function, *given, **named)


def test_a_container_that_does_not_say_its_kind_is_named(monkeypatch):
    data = wc.CrowdNumbers.from_arrays(["t"], ["w"], [1.5])
    monkeypatch.setattr(wc.CrowdNumbers, "kind", "")
    with pytest.raises(TypeError, match="CrowdNumbers must say kind: ClassVar = 'numbers'"):
        kind_of(data)


def test_outside_of_the_block_the_message_names_it(unregistered, tmp_path):
    fitted = ToyMean().fit(COLUMNS)
    fitted.save(tmp_path / "model")
    reason = (
        r"ToyMean takes 'toy-numbers', a kind that is not known here; .*`with with_kind\(KIND\):`"
    )
    for call in (ToyMean().fit, fitted.predict, lambda data: wc.aggregate(data, ToyMean())):
        with pytest.raises(ParameterError, match=reason):
            unregistered(call, COLUMNS)
    with pytest.raises(DataError, match=r"no method 'toy-mean' here; .*`with with_kind\(KIND\):`"):
        unregistered(wc.load, tmp_path / "model")


def test_a_saved_model_comes_back_and_a_forged_one_does_not(tmp_path):
    fitted = ToyMean(pseudo_count=1.0).fit(COLUMNS)
    fitted.save(tmp_path / "model")
    loaded = wc.load(tmp_path / "model")
    assert loaded.values_.tolist() == fitted.values_.tolist()
    assert loaded.predict(COLUMNS).tolist() == fitted.predict(COLUMNS).tolist()
    fitted.values_ = fitted.values_[:1]
    with pytest.raises(DataError, match=r"values_ has the shape \(1,\) where \(2,\) is needed"):
        fitted.save(tmp_path / "other")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "numbers.csv"
    rows = zip(*COLUMNS, strict=True)
    path.write_text("task,worker,score\n" + "".join(f"{t},{w},{v}\n" for t, w, v in rows))
    return path


def test_files_are_read_by_the_columns_of_the_kind(file):
    data = wc.read(file, type="toy-numbers")
    assert repr(data) == "ToyNumbers(2 tasks, 2 workers, 3 annotations)"
    assert data.value.tolist() == [1.0, 2.0, 5.0]
    assert data.notes == ("columns recognised: value = 'score'",)
    assert wc.read(file, type="toy-numbers", value="score").value.tolist() == [1.0, 2.0, 5.0]
    assert wc.read(file, type="toy-numbers", label="score").value.tolist() == [1.0, 2.0, 5.0]
    with pytest.raises(ParameterError, match=r"classes.* is for classes, and ToyNumbers have none"):
        wc.read(file, type="toy-numbers", classes=["a"])
    with pytest.raises(ParameterError, match="Unknown option 'valeu'"):
        wc.read(file, type="toy-numbers", valeu="score")


@pytest.fixture
def aggregated(capfd, file):
    """Return a function that runs ``wisecrowd aggregate``: exit code, output, errors."""

    def command(*options: str) -> tuple[int, str, str]:
        code = run(["aggregate", str(file), *options])
        return code, *capfd.readouterr()

    return command


def test_the_command_line_aggregates_them(aggregated, file, tmp_path):
    workers, model = tmp_path / "workers.csv", tmp_path / "model"
    ways = (["--type", "toy-numbers"], ["-m", "toy-mean"],
            ["--type", "toy-numbers", "-m", "toy-mean", "--label", "score",
             "--workers", str(workers), "--save", str(model)])  # fmt: skip
    for way in ways:
        code, out, errors = aggregated(*way)
        assert code == 0, errors
        assert out.splitlines() == ["task,value,variance,n_labels", "t1,1.5,0.25,2",
                                            "t2,5,0,1"]  # fmt: skip
        assert "toy-mean: 2 tasks, 2 workers, 3 labels; 1 iteration" in errors
    assert workers.read_text().splitlines()[1] == "ann,2,-0.25"
    assert wc.load(model).values_.tolist() == [1.5, 5.0]
    facts = json.loads(aggregated("-m", "toy-mean", "--json")[1])
    assert facts["n_labels"] == 3
    assert facts["labels"][0] == {"task": "t1", "value": 1.5, "variance": 0.25, "n_labels": 2}
    for wrong, reason in (
        (["--soft"], "these answers are not classes"),
        (["--type", "labels"], "toy-mean takes --type toy-numbers"),
        (["--calibrate"], "are for classes"),
        (["--classes", "a,b"], "is for classes"),
    ):
        code, _, errors = aggregated("-m", "toy-mean", *wrong)
        assert code == 2
        assert reason in errors


def test_predicting_from_features_is_refused_with_a_call_that_works(capfd, file, tmp_path):
    ToyMean().fit(COLUMNS).save(tmp_path / "model")
    assert run(["predict", str(tmp_path / "model"), str(file)]) == 3
    assert "wisecrowd.load(FOLDER).predict(labels)." in capfd.readouterr().err


@dataclass(eq=False, repr=False, kw_only=True)
class Short(ToyMean):
    def _predict(self, problem):
        found = super()._predict(problem)
        return replace(found, variance=found.variance[1:])


@dataclass(eq=False, repr=False, kw_only=True)
class ShortBias(ToyMean):
    def _fit(self, problem):
        return replace(super()._fit(problem), extra={"worker_bias": np.zeros(3)})


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (Short, r"variance_ of Short has the shape \(1,\) where \(2,\) is needed"),
        (ShortBias, r"worker_bias_ of ShortBias has the shape \(3,\) where \(2,\) is needed"),
    ],
)
def test_answers_of_a_wrong_length_are_not_published(method, reason):
    made = method()
    with pytest.raises(TypeError, match=reason):
        made.fit(COLUMNS)
    assert not hasattr(made, "values_")


def test_the_common_checks_hold():
    check_aggregator(ToyMean)


@dataclass(eq=False, repr=False, kw_only=True)
class FavoursFirstTask(ToyMean):
    def _predict(self, problem):
        found = super()._predict(problem)
        return replace(found, values=found.values + 1e-3 * problem.data.value[0])


@dataclass(eq=False, repr=False, kw_only=True)
class Absolute(ToyMean):
    def _predict(self, problem):
        found = super()._predict(problem)
        return replace(found, values=np.abs(found.values))


@dataclass(eq=False, repr=False, kw_only=True)
class IgnoresWeights(ToyMean):
    def _predict(self, problem):
        return super()._predict(replace(problem, data=replace(problem.data, weight=None)))


@dataclass(eq=False, repr=False, kw_only=True)
class WeighsRoughly(IgnoresWeights):
    promises: ClassVar[Tags] = Tags(exact_replication=False)


@pytest.mark.parametrize(
    ("method", "name"),
    [
        (FavoursFirstTask, "check_renaming_tasks"),
        (Absolute, "check_symmetries"),
        (IgnoresWeights, "check_integer_weights"),
    ],
)
def test_the_common_checks_can_fail(method, name):
    with pytest.raises(AssertionError, match=rf"{name} \({method.__name__}\)"):
        check_aggregator(method)


def test_weights_may_be_inexact_where_the_tag_says_so():
    check_integer_weights(maker(WeighsRoughly))
