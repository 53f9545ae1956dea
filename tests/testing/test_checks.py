"""The checks must be able to fail: methods broken in one way each, and the check that notices."""

from __future__ import annotations

import inspect
import random
import re
import sys
import warnings
from dataclasses import fields, replace
from unittest import SkipTest

import numpy as np
import pytest
from scipy.sparse import issparse

from wisecrowd import kernels, testing
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.core.aggregator import Tags
from wisecrowd.core.exceptions import DataError, WisecrowdWarning
from wisecrowd.core.findings import Finding
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.engines.threads import get_threads
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.label_law import ConfusionLaw
from wisecrowd.kinds.classes.prior import TaskPrior
from wisecrowd.testing import CHECKS, check_aggregator, maker
from wisecrowd.testing.contract import check_parameter_ranges, unsound_parameters
from wisecrowd.testing.crowds import simulated
from wisecrowd.testing.degenerate import single_labels
from wisecrowd.testing.foundation import check


def normalised(probas):
    return probas / probas.sum(axis=1, keepdims=True)


class Broken(DawidSkene):
    """Dawid and Skene's method with hooks to spoil data and results."""

    def _fit(self, problem):
        problem = self.given(problem)
        return self.spoil(super()._fit(problem), problem.data)

    def given(self, problem):
        return problem

    def spoil(self, result, labels):
        return result


class Unseeded(Broken):
    def spoil(self, result, labels):
        noise = 1e-6 * np.random.default_rng().random(result.probas.shape)
        return replace(result, answers=normalised(result.probas + noise))


class OverrulesSilently(Broken):
    def spoil(self, result, labels):
        probas = np.zeros_like(result.probas)
        probas[:, 0] = 1.0
        return replace(result, answers=probas)

    def _findings(self, problem, result, gold):
        return []


class FavoursFirstTask(Broken):
    def spoil(self, result, labels):
        probas = result.probas.copy()
        probas[0] = normalised(probas[:1] + 1e-3)
        return replace(result, answers=probas)


class FavoursFirstClass(Broken):
    def spoil(self, result, labels):
        return replace(
            result, answers=normalised(result.probas + 1e-3 * np.eye(labels.n_classes)[0])
        )


class FavoursFirstWorker(Broken):
    def given(self, problem):
        labels = problem.data
        weight = np.where(labels.worker == 0, 2.0, 1.0)
        weight *= 1 if labels.weight is None else labels.weight
        return replace(problem, data=replace(labels, weight=weight))


class KnowsPandas(Broken):
    def spoil(self, result, labels):
        shift = 0.0 if labels.frame_library is None else 1e-12
        return replace(result, answers=normalised(result.probas + shift))


class GoldConfuses(Broken):
    def given(self, problem):
        self.confused = problem.prior.index is not None
        return problem

    def spoil(self, result, labels):
        return OppositeLabels.spoil(self, result, labels) if self.confused else result


class DropsOptions(Broken):
    def fit(self, labels, y=None, **options):
        return super().fit(labels, y)


class UsesGlobalState(Broken):
    def spoil(self, result, labels):
        np.random.random()  # noqa: NPY002
        return result


class UsesPythonState(Broken):
    def spoil(self, result, labels):
        random.random()
        return result


class Remembers(Broken):
    def spoil(self, result, labels):
        calls = self.__dict__.get("calls", 0)
        self.calls = calls + 1
        return replace(result, answers=normalised(result.probas + 1e-9 * calls))


class RemembersWorkers(Broken):
    def spoil(self, result, labels):
        former = vars(self).get("workers_", labels.workers)
        return replace(result, extra={"n_known": len(former)})


class CountsThreads(Broken):
    def spoil(self, result, labels):
        return replace(result, worker_accuracy=result.worker_accuracy * (1 - 1e-12 * get_threads()))


class SlowKernelsDiffer(Broken):
    def spoil(self, result, labels):
        shift = 1e-6 if kernels.COMPILE_FROM == 0 else 0.0
        return replace(result, answers=normalised(result.probas + shift))


class CountsWorkers(Broken):
    def spoil(self, result, labels):
        return replace(result, answers=normalised(result.probas + 1e-4 * labels.n_workers))


class CountsTasks(Broken):
    def spoil(self, result, labels):
        return replace(result, answers=normalised(result.probas + 1e-4 * labels.n_tasks))


class DriftsBetweenCopies(Broken):
    def spoil(self, result, labels):
        drift = np.linspace(0, 1e-3, labels.n_tasks)[:, None]
        return replace(result, answers=normalised(result.probas + drift))


class IgnoresWeights(Broken):
    def given(self, problem):
        return replace(problem, data=replace(problem.data, weight=None))


class NotNormalised(Broken):
    def spoil(self, result, labels):
        return replace(result, answers=0.9 * result.probas)


class Transposed(Broken):
    def spoil(self, result, labels):
        swapped = result.confusion.transpose(0, 2, 1)
        return replace(result, confusion=swapped / swapped.sum(axis=2, keepdims=True))


Transposed.__name__ = "DawidSkene"  # so that it is held to Dawid and Skene's own story


class OppositeLabels(Broken):
    def spoil(self, result, labels):
        return replace(result, answers=normalised(1 - result.probas))


class OppositeWorkers(Broken):
    def spoil(self, result, labels):
        return replace(result, worker_accuracy=1 - result.worker_accuracy)


class Falls(Broken):
    def spoil(self, result, labels):
        return replace(result, history=(*result.history, result.history[-1] - 1e-3))


class PredictsOtherwise(Broken):
    def _predict(self, problem):
        return normalised(super()._predict(problem) + 1e-6)


class OneStepBehind(Broken):
    """The posterior of the parameters before the last update, as loops without a last step have."""

    def spoil(self, result, labels):
        confusion = normalised(result.confusion.reshape(-1, labels.n_classes) + 1e-3)
        return replace(result, confusion=confusion.reshape(result.confusion.shape))


class IgnoresPriors(Broken):
    def given(self, problem):
        rows = np.zeros((1, problem.data.n_classes))
        return replace(problem, prior=TaskPrior(rows, given=problem.prior.given))


class RowsDiffer(Broken):
    def given(self, problem):
        prior = problem.prior
        if prior.index is None:
            return problem
        return replace(problem, prior=replace(prior, rows=0.9 * prior.rows))


class PriorIsNoClassPrior(Broken):
    def given(self, problem):
        return replace(problem, prior=replace(problem.prior, given=False))


class NaNForOneAnnotation(Broken):
    def spoil(self, result, labels):
        return (
            result if labels.n_annotations > 1 else replace(result, answers=np.nan * result.probas)
        )


class DividesByZero(Broken):
    def spoil(self, result, labels):
        np.zeros(1) / np.zeros(1)
        return result


class DislikesUnusedClasses(Broken):
    def spoil(self, result, labels):
        result.probas[:, labels.class_totals == 0] = 1.0
        return replace(result, answers=normalised(result.probas))


class FailsOnOneClass(Broken):
    def spoil(self, result, labels):
        if labels.n_classes == 1:
            raise IndexError("list index out of range")
        return result


class ChangesParameters(Broken):
    def __init__(self, max_iter=100):
        super().__init__(max_iter=int(max_iter) + 1)


class ChecksNothing(Broken):
    def _validate_parameters(self):
        pass


class Unpicklable(Broken):
    def spoil(self, result, labels):
        return replace(result, extra={"closure": lambda: None})


class RefitsInCopies(Broken):
    def __init__(self, *, max_iter=100):
        super().__init__(max_iter=max_iter)
        self.probas_ = None


class Undocumented(DawidSkene):
    pass


Undocumented.__doc__ = None


class WrongSizes(Broken):
    def spoil(self, result, labels):
        return replace(result, worker_accuracy_error=result.worker_accuracy_error[:-1])


class NotInductive(Broken):
    promises = Tags(inductive=True)

    def _predict(self, problem):
        raise ValueError("only the training tasks")


class LikelihoodIsPositive(Broken):
    def _log_likelihood(self, problem):
        return 1.0


class LawTransposed(Broken):
    def _label_law(self):
        law = super()._label_law()
        return ConfusionLaw(law.class_prior, law.matrices.transpose(0, 2, 1))


class LawOfUniformClasses(Broken):
    def _log_likelihood(self, problem):
        uniform = TaskPrior(-np.log(np.tile(self.class_prior_, (1, 1))))
        return super()._log_likelihood(replace(problem, prior=uniform))


class TurnsStartsRound(Broken):
    def given(self, problem):
        start = problem.start
        return problem if start is None else replace(problem, start=start[:, ::-1].copy())


class IgnoresStarts(Broken):
    def given(self, problem):
        return replace(problem, start=None)


class SparseForgets(MajorityVote):
    def _fit(self, problem):
        result = super()._fit(problem)
        return replace(result, answers=0.9 * result.probas) if issparse(result.probas) else result


class WarnsOfItself(DawidSkene):
    def _fit(self, problem):
        own = Finding("own", "medium", 1.0, (), "Do not believe me.", "")
        return replace(super()._fit(problem), findings=(own,))


class NeverConverges(DawidSkene):
    def _fit(self, problem):
        return replace(super()._fit(problem), converged=False)


class SureOfOneWorker(DawidSkene):
    def _with_humility(self, data, result, informed):
        return replace(result, answers=np.round(result.probas))


class TakesSides(DawidSkene):
    def _fit(self, problem):
        found = super()._fit(problem)
        return replace(
            found, answers=np.eye(problem.data.n_classes)[np.zeros(len(found.probas), int)]
        )

    def _findings(self, problem, result, gold):
        return []


NOTICED = [
    (SureOfOneWorker, "check_ties_and_single_workers"),
    (TakesSides, "check_ties_and_single_workers"),
    (WarnsOfItself, "check_good_crowds"),
    (NeverConverges, "check_good_crowds"),
    (OverrulesSilently, "check_single_labels_kept"),
    (OverrulesSilently, "check_unanimous_labels"),
    (OverrulesSilently, "check_even_split"),
    (Unseeded, "check_row_order"),
    (Unseeded, "check_same_seed"),
    (FavoursFirstTask, "check_renaming_tasks"),
    (FavoursFirstWorker, "check_renaming_workers"),
    (FavoursFirstClass, "check_renaming_classes"),
    (FavoursFirstClass, "check_symmetries"),
    (KnowsPandas, "check_input_forms"),
    (Unseeded, "check_matrix"),
    (UsesGlobalState, "check_input_untouched"),
    (UsesPythonState, "check_input_untouched"),
    (Remembers, "check_same_seed"),
    (RemembersWorkers, "check_fit_twice"),
    (CountsThreads, "check_thread_count"),
    (SlowKernelsDiffer, "check_kernels_agree"),
    (CountsWorkers, "check_unlabelled_worker"),
    (CountsTasks, "check_unlabelled_task"),
    (DriftsBetweenCopies, "check_disjoint_copy"),
    (IgnoresWeights, "check_integer_weights"),
    (IgnoresWeights, "check_zero_weights"),
    (SparseForgets, "check_sparse_posterior"),
    (NotNormalised, "check_probabilities"),
    (OppositeLabels, "check_recovers_truth"),
    (OppositeWorkers, "check_recovers_truth"),
    (Transposed, "check_recovers_own_model"),
    (Falls, "check_objective_monotone"),
    (PredictsOtherwise, "check_predict_repeats_fit"),
    (OneStepBehind, "check_predict_repeats_fit"),
    (NotInductive, "check_new_tasks"),
    (LikelihoodIsPositive, "check_score"),
    (LawTransposed, "check_label_law"),
    (LawOfUniformClasses, "check_label_law"),
    (TurnsStartsRound, "check_warm_start"),
    (IgnoresStarts, "check_warm_start"),
    (NotNormalised, "check_one_label_per_task"),
    (IgnoresPriors, "check_gold"),
    (IgnoresPriors, "check_all_gold"),
    (GoldConfuses, "check_gold_teaches"),
    (DropsOptions, "check_bad_gold_and_priors"),
    (RowsDiffer, "check_task_prior_forms"),
    (IgnoresPriors, "check_task_prior_counts"),
    (PriorIsNoClassPrior, "check_uniform_task_prior"),
    (NaNForOneAnnotation, "check_one_annotation"),
    (OppositeLabels, "check_one_worker"),
    (FailsOnOneClass, "check_one_class"),
    (OppositeLabels, "check_disconnected"),
    (DividesByZero, "check_all_disagree"),
    (DislikesUnusedClasses, "check_unused_class"),
    (WrongSizes, "check_empty_rows"),
    (DividesByZero, "check_busy_worker"),
    (OppositeLabels, "check_busy_task"),
    (OppositeLabels, "check_many_classes"),
    (ChangesParameters, "check_parameters"),
    (ChecksNothing, "check_bad_parameters"),
    (ChecksNothing, "check_parameter_ranges"),
    (RefitsInCopies, "check_not_fitted"),
    (WrongSizes, "check_tables"),
    (Unpicklable, "check_pickle"),
    (Unpicklable, "check_save_and_load"),
    (ChangesParameters, "check_clone"),
    (NotInductive, "check_model_selection"),
    (Undocumented, "check_docstring"),
]


def named(name):
    return next(check for check in CHECKS if check.__name__ == name)


@pytest.mark.parametrize(
    ("method", "name"), NOTICED, ids=lambda value: getattr(value, "__name__", value)
)
def test_broken_methods_are_noticed(method, name):
    with pytest.raises(AssertionError, match=rf"{name} \({method.__name__}\): "):
        named(name)(maker(method))


@pytest.mark.parametrize("name", sorted({name for _, name in NOTICED}))
def test_the_same_checks_pass_without_the_break(name):
    named(name)(maker(DawidSkene))


MODULES = ("invariance", "behaviour", "prior_checks", "degenerate", "contract", "humility")


def test_all_checks_are_listed_once():
    written = {
        name
        for module in MODULES
        for name, value in vars(sys.modules[f"wisecrowd.testing.{module}"]).items()
        if name.startswith("check_") and inspect.isfunction(value)
    }
    listed = [check.__name__ for check in CHECKS]
    assert len(set(listed)) == len(listed)
    assert set(listed) == written - {"check_aggregator"}


def test_instances_and_classes_are_accepted():
    assert maker(DawidSkene)() is not maker(DawidSkene)()
    made = maker(DawidSkene(max_iter=3))()
    assert made.max_iter == 3
    for bad in (3, int):
        with pytest.raises(TypeError, match="is not an Aggregator"):
            maker(bad)


def test_check_aggregator_stops_at_the_first_failure():
    with pytest.raises(AssertionError, match=r"check_row_order \(Unseeded\)"):
        check_aggregator(Unseeded())


def test_missing_libraries_are_told(monkeypatch):
    @check
    def check_nothing(make):
        raise SkipTest("sklearn is not installed")

    monkeypatch.setattr(testing.checks, "CHECKS", (check_nothing,))
    with pytest.warns(WisecrowdWarning, match="check_nothing was left out for DawidSkene: sklearn"):
        check_aggregator(DawidSkene)


def test_what_wisecrowd_has_to_say_is_no_failure():
    @check
    def check_warning(make):
        warnings.warn("worth knowing", WisecrowdWarning, stacklevel=1)

    check_warning(maker(DawidSkene))


# Workers have parameters for each class that nothing ties to agreement with others.
CHANGES_SINGLE_LABELS = {"confusion-vector", "minimax-entropy"}
# The likelihood has equally good optima in which either worker is right.
PREFERS_A_WORKER = {"mace", "coupled-tensor"}


@pytest.mark.parametrize("name", sorted(set(method_names()) - CHANGES_SINGLE_LABELS))
def test_single_labels_are_the_result(name):
    for n_classes in (2, 4):
        for accuracy in (1.0, 0.8):
            for labels in single_labels(n_classes, accuracy):
                try:
                    fitted = get_method(name)().fit(labels)
                except DataError:  # a method for two classes
                    assert n_classes > 2
                    continue
                np.testing.assert_array_equal(fitted.labels_, labels.label)


@pytest.mark.parametrize("name", sorted(set(method_names()) - PREFERS_A_WORKER))
@pytest.mark.parametrize("given", [[[0, 1]], [[0, 1], [0, 1]], [[0, 1], [1, 0]]], ids=str)
def test_one_against_one_is_a_tie(name, given):
    fitted = get_method(name)().fit(CrowdLabels.from_matrix(given))
    np.testing.assert_allclose(np.asarray(fitted.probas_), 0.5, atol=0.02)
    assert fitted.ties_.all() or fitted.tags().stochastic


LABELS = simulated(12, 4, 2, 3).labels
X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
FEW = {"epochs": 1, "rounds": 1, "steps": 1, "module": "linear"}


@pytest.mark.filterwarnings("ignore::wisecrowd.core.exceptions.WisecrowdWarning")
@pytest.mark.parametrize("name", method_names("learning"))
def test_learners_take_no_parameter_that_breaks_them(name):
    cls = get_method(name, "learning")
    few = {field.name: FEW[field.name] for field in fields(cls) if field.name in FEW}
    assert list(unsound_parameters(cls(**few), _fit)) == []


def _fit(learner):
    if learner.get_params(deep=False).get("checkpoint") is not None:
        learner.checkpoint = None  # a path may be anything
    return learner.fit(X, LABELS)


def test_the_check_notices_what_it_is_for():
    class Lax(MajorityVote):
        """A vote that checks nothing."""

        def _validate_parameters(self):
            pass

    with pytest.raises(AssertionError, match="smoothing="):
        check_parameter_ranges(maker(Lax))
    faults = "; ".join(unsound_parameters(Lax(), lambda method: method.fit(LABELS)))
    assert re.search(r"smoothing=inf: .*smoothing=None: TypeError", faults)
    check_parameter_ranges(maker(DawidSkene))
