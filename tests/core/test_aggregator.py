from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import DataError, NotFittedError, ParameterError, WisecrowdWarning
from wisecrowd.core.findings import Finding
from wisecrowd.core.result import Fit
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.kernels.posteriors import log_normalise, soft_votes

NOTE = Finding("note", "medium", 1.0, (), "something to know", "")
MATRIX = np.array([[0, 0, 1], [2, 2, 2], [1, 1, 0], [0, 0, 0]])


class Votes(Aggregator):
    """The soft vote times the prior; remembers what it was given."""

    promises = Tags(inductive=True, likelihood=True)

    def __init__(self, *, max_iter=10, inner=None, random_state=0):
        self.max_iter = max_iter
        self.inner = inner
        self.random_state = random_state

    def _fit(self, problem):
        labels, start = problem.data, problem.start
        self.seen_start = None if start is None else start.copy()
        accuracy = np.full(labels.n_workers, 0.95)
        return Fit(
            self._predict(problem),
            accuracy,
            np.full(labels.n_workers, 0.1),
            class_prior=np.full(labels.n_classes, 1 / labels.n_classes),
            findings=(NOTE,) if self.max_iter == 3 else (),
            extra={"draw": problem.rng.random()},
        )

    def _predict(self, problem):
        labels, prior = problem.data, problem.prior
        votes = soft_votes(labels.indptr, labels.label, labels.weight, labels.n_classes)
        with np.errstate(divide="ignore"):
            scores = np.log(np.maximum(votes, 1e-12)) + prior.dense(labels.n_tasks)
        return log_normalise(scores)[0]

    def _log_likelihood(self, problem):
        return -2.0 * problem.data.n_annotations


class Transductive(Votes):
    promises = Tags(inductive=False)


class TwoOnly(Votes):
    promises = Tags(binary=True)


def text_labels():
    return CrowdLabels.from_arrays(
        ["t2", "t2", "t1", "t1", "t3"], ["b", "a", "a", "b", "b"], ["no", "no", "yes", "no", "yes"]
    )


def test_fit_publishes_everything_by_the_users_ids():
    model = Votes()
    assert model.fit(text_labels()) is model
    assert model.tasks_.tolist() == ["t1", "t2", "t3"]
    assert model.workers_.tolist() == ["a", "b"]
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.labels_.tolist() == ["no", "no", "yes"]  # t1 is a tie: "no" is more common
    assert model.ties_.tolist() == [True, False, False]
    np.testing.assert_allclose(model.confidence_, [0.5, 1, 1])
    assert (model.n_iter_, model.converged_, model.history_, model.warnings_) == (1, True, (), ())
    assert 0 <= model.draw_ < 1
    assert model.task_columns()["n_labels"].tolist() == [2, 2, 1]
    workers = model.worker_columns()
    assert workers["n_labels"].tolist() == [2, 3]
    np.testing.assert_allclose(workers["agreement_with_result"], 0.95)


def test_parts_a_model_lacks_are_attribute_errors():
    model = Votes().fit(MATRIX)
    with pytest.raises(AttributeError, match="its model has no such part") as caught:
        model.confusion_  # noqa: B018
    assert not isinstance(caught.value, NotFittedError)
    with pytest.raises(NotFittedError, match="has no confusion_ yet; call fit"):
        Votes().confusion_  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        model.colour  # noqa: B018


def test_nothing_of_a_former_fit_lingers():
    class Sometimes(Votes):
        def _fit(self, problem):
            result = super()._fit(problem)
            labels = problem.data
            confusion = np.zeros((labels.n_workers, 2, 2)) if labels.n_classes == 2 else None
            return replace(result, confusion=confusion, extra={})

    model = Sometimes().fit(text_labels())
    assert model.confusion_.shape == (2, 2, 2)
    assert not hasattr(model.fit(MATRIX), "confusion_")
    assert model.labels_.tolist() == [0, 2, 1, 0]


def test_warnings_are_kept_and_shown():
    with pytest.warns(WisecrowdWarning, match="something to know") as caught:
        model = Votes(max_iter=3).fit(MATRIX)
    assert model.findings_ == (NOTE,)
    assert model.warnings_ == ("something to know",)
    assert caught[0].filename == __file__  # it points at the user's call


def test_same_seed_same_draw_and_generators_go_on():
    assert Votes().fit(MATRIX).draw_ == Votes().fit(MATRIX).draw_
    assert Votes(random_state=1).fit(MATRIX).draw_ != Votes().fit(MATRIX).draw_
    rng = np.random.default_rng(0)
    model = Votes(random_state=rng)
    assert model.fit(MATRIX).draw_ != model.fit(MATRIX).draw_


def test_parameters():
    model = Votes(max_iter=5)
    assert model.get_params() == {"max_iter": 5, "inner": None, "random_state": 0}
    assert repr(model) == "Votes(max_iter=5)"
    assert repr(Votes()) == "Votes()"
    with pytest.raises(ParameterError, match=r"no parameter 'max_itr' \(did you mean 'max_iter'"):
        model.set_params(max_itr=3)


def test_nested_parameters():
    model = Votes(inner=Votes(max_iter=2))
    assert model.get_params()["inner__max_iter"] == 2
    model.set_params(inner__max_iter=9)
    assert model.inner.max_iter == 9
    assert "inner__max_iter" not in model.get_params(deep=False)


@pytest.mark.parametrize(
    "params", [{"max_iter": 0}, {"max_iter": 2.0}, {"random_state": "x"}, {"random_state": -1}]
)
def test_shared_parameters_are_checked(params):
    with pytest.raises(ParameterError, match=next(iter(params))):
        Votes(**params).fit(MATRIX)


def test_binary_methods_name_the_way_out():
    with pytest.raises(DataError, match=r"there are 3; wrap it: OneVsRest\(TwoOnly\(\)\)"):
        TwoOnly().fit(MATRIX)
    TwoOnly().fit(text_labels())


# ------------------------------------------------------------------------------------------- starts


def test_start_is_normalised_and_forgotten():
    model = Votes()
    model.fit(text_labels(), init=[[2, 2], [1, 3], [0, 5]])
    np.testing.assert_allclose(model.seen_start, [[0.5, 0.5], [0.25, 0.75], [0, 1]])
    model.fit(text_labels())
    assert model.seen_start is None


@pytest.mark.parametrize(
    "bad", [np.ones((2, 2)), -np.ones((3, 2)), np.zeros((3, 2)), np.full((3, 2), np.nan)]
)
def test_bad_starts(bad):
    with pytest.raises(DataError, match="init"):
        Votes().fit(text_labels(), init=bad)


def test_former_fit_as_a_start_follows_the_ids():
    former = Votes().fit(text_labels())
    turned = CrowdLabels.from_arrays(
        ["t2", "t2", "t1", "t1", "t3"],
        ["b", "a", "a", "b", "b"],
        ["no", "no", "yes", "no", "yes"],
        classes=["yes", "no", "unsure"],
        tasks=["t3", "t1", "t2"],
    )
    model = Votes().fit(turned, init=former)
    np.testing.assert_allclose(model.seen_start, [[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0]], atol=1e-9)


def test_transductive_former_fit_as_a_start_follows_the_ids():
    former = Transductive().fit(text_labels())
    backwards = text_labels()[[2, 1, 0]]
    model = Votes().fit(backwards, init=former)
    np.testing.assert_allclose(model.seen_start, former.probas_[::-1])
    with pytest.raises(DataError, match="'t9' was not in the fit"):
        Votes().fit((["t9"], ["a"], ["no"]), init=former)


def test_method_given_as_start_is_fitted_but_not_changed():
    start = Votes(max_iter=4)
    model = Votes().fit(text_labels(), init=start)
    np.testing.assert_allclose(model.seen_start, Votes().fit(text_labels()).probas_)
    assert not hasattr(start, "probas_")


# ------------------------------------------------------------------------------- predict and score


@pytest.mark.filterwarnings("ignore:.*were not in the fit")
def test_predict_in_other_vocabularies():
    model = Votes().fit(text_labels())
    new = CrowdLabels.from_arrays(["x", "x"], ["zoe", "b"], ["yes", "yes"], classes=["yes", "no"])
    np.testing.assert_allclose(model.predict_proba(new), [[0, 1]], atol=1e-9)
    assert model.predict(new).tolist() == ["yes"]
    with pytest.raises(DataError, match=r"'yess' \(did you mean 'yes'\?\) was not among "):
        model.predict((["x"], ["a"], ["yess"]))


def test_classes_declared_but_unused_need_not_be_known():
    model = Votes().fit(text_labels())
    new = CrowdLabels.from_arrays(["x"], ["a"], ["yes"], classes=["maybe", "yes"])
    assert model.predict(new).tolist() == ["yes"]


@pytest.mark.filterwarnings("ignore:.*were not in the fit")
def test_prediction_ties_go_by_the_classes_of_the_fit():
    tie = (["x", "x"], ["a", "b"], ["yes", "no"])
    assert Votes().fit(text_labels()).predict(tie).tolist() == ["no"]
    more_yes = CrowdLabels.from_arrays(["t"], ["a"], ["yes"], classes=["no", "yes"])
    assert Votes().fit(more_yes).predict(tie).tolist() == ["yes"]


def test_gold_and_task_prior_reach_prediction():
    model = Votes().fit(text_labels())
    new = (["x", "x", "y"], ["a", "b", "a"], ["no", "yes", "no"])
    np.testing.assert_allclose(model.predict_proba(new, task_prior=[0.2, 0.8])[0], [0.2, 0.8])
    assert model.predict(new, gold={"y": "yes"}).tolist() == ["no", "yes"]


def test_score():
    model = Votes().fit(text_labels())
    assert model.score(text_labels(), {"t1": "no", "t2": "yes"}) == 0.5
    assert model.score(text_labels(), ["no", None, "yes"]) == 1.0
    assert model.score(text_labels()) == -2.0
    with pytest.raises(DataError, match="nothing to score"):
        model.score(text_labels(), [None, None, None])


def test_score_without_truth_needs_a_likelihood():
    with pytest.raises(ParameterError, match="no likelihood"):
        Transductive().fit(text_labels()).score(text_labels())


def test_score_of_a_transductive_method_looks_tasks_up():
    model = Transductive().fit(text_labels())
    assert model.score(text_labels()[[2, 0]], {"t3": "yes", "t1": "yes"}) == 0.5
    with pytest.raises(DataError, match="cannot predict new tasks"):
        model.score((["t9"], ["a"], ["no"]), {"t9": "no"})
    with pytest.raises(DataError, match="no posterior for new tasks"):
        model.predict_proba(text_labels())


def test_weighted_likelihood_counts_weights():
    labels = CrowdLabels.from_arrays(["t", "t"], ["a", "b"], [0, 1], weight=[3.0, 1.0])
    assert Votes().fit(labels).score(labels) == -2.0 * 2 / 4


def test_fit_predict_returns_what_came_in():
    pandas = pytest.importorskip("pandas")
    table = {"task": ["t1", "t1", "t2"], "worker": ["a", "b", "a"], "label": ["x", "x", "y"]}
    series = Votes().fit_predict(pandas.DataFrame(table))
    assert series.to_dict() == {"t1": "x", "t2": "y"}
    assert (series.name, series.index.name) == ("label", "task")
    assert Votes().fit_predict(tuple(table.values())).tolist() == ["x", "y"]


def test_methods_must_define_their_parts():
    class Empty(Aggregator):
        promises = Tags(likelihood=True)

    with pytest.raises(TypeError, match="must define _fit"):
        Empty().fit(MATRIX)


def test_unknown_workers_are_said():
    model = Votes().fit(text_labels())
    with pytest.warns(WisecrowdWarning, match="'zoe', were not in the fit"):
        model.predict_proba((["t1"], ["zoe"], ["no"]))
    numbers = Votes().fit((["t1", "t1"], ["1", "2"], ["no", "yes"]))
    with pytest.warns(WisecrowdWarning, match="of type str, not int: convert one of them"):
        numbers.predict_proba((["t1"], [1], ["no"]))


def test_nothing_to_fit():
    with pytest.raises(DataError, match="no annotations to fit"):
        Votes().fit(text_labels()[[]])
