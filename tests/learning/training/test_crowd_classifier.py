from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from wisecrowd.core.exceptions import DataError, NotFittedError, WisecrowdWarning
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import Raykar
from wisecrowd.learning.training.crowd_classifier import CrowdClassifier, Learned
from wisecrowd.learning.training.label_model import forecast


@dataclass(eq=False, repr=False, kw_only=True)
class FirstColumns(CrowdClassifier):
    """The first K features are the logits: nothing is learned, and all the rest is the base's."""

    scale: float = 1.0

    def _fit(self, training):
        self.seen = training
        self._n_classes = training.labels.n_classes
        return Learned(self._log_probas(training.X))

    def _log_probas(self, X):
        logits = self.scale * np.asarray(X)[:, : self._n_classes]
        return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)


def crowd(n=40, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    X = 3 * np.eye(2)[truth] + rng.normal(size=(n, 2))
    votes = np.where(rng.random((n, 3)) < 0.8, truth[:, None], 1 - truth[:, None])
    return X, votes, truth


# --------------------------------------------------------------------------------------------- fit


def test_rows_and_tasks_align_by_id_whatever_the_order():
    X, votes, _ = crowd(12)
    order = np.random.default_rng(1).permutation(12)
    straight = FirstColumns().fit(X, votes)
    task = np.repeat([f"img{i}" for i in range(12)], 3)
    labels = CrowdLabels.from_arrays(task, np.tile(np.arange(3), 12), votes.ravel())
    named = FirstColumns().fit(X[order], labels, tasks=[f"img{i}" for i in order])
    np.testing.assert_allclose(named.probas_, straight.probas_[order])
    assert named.tasks_.tolist() == [f"img{i}" for i in order]
    numbers = CrowdLabels.from_arrays(
        np.repeat([str(i) for i in range(12)], 3), np.tile(np.arange(3), 12), votes.ravel()
    )
    np.testing.assert_allclose(FirstColumns().fit(X, numbers).probas_, straight.probas_)


def test_what_the_fit_publishes():
    X, votes, truth = crowd()
    model = FirstColumns().fit(X, votes)
    log_f = model._log_probas(X)
    np.testing.assert_allclose(
        model.probas_, forecast(log_f, CrowdLabels.from_matrix(votes), model.confusion_)
    )
    np.testing.assert_allclose(model.confidence_, model.probas_.max(axis=1))
    np.testing.assert_array_equal(model.labels_, model.probas_.argmax(axis=1))
    assert np.mean(model.labels_ == truth) > 0.9
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1)
    diagonal = np.diagonal(model.confusion_, axis1=1, axis2=2)
    np.testing.assert_allclose(model.worker_accuracy_, diagonal @ model.class_prior_)
    np.testing.assert_allclose(model.class_prior_, model.probas_.mean(axis=0))
    assert model.n_features_in_ == 2
    assert list(model.task_columns()) == ["task", "label", "confidence", "n_labels"]
    assert model.worker_columns()["n_labels"].tolist() == [40, 40, 40]


def test_known_classes_are_kept_and_reach_the_method():
    X, votes, truth = crowd()
    model = FirstColumns().fit(X, votes, gold={3: 1 - truth[3]})
    assert model.labels_[3] == 1 - truth[3]
    assert model.probas_[3].max() == 1.0
    assert model.seen.gold.tolist() == [(1 - truth[3] if i == 3 else -1) for i in range(40)]
    with pytest.raises(DataError, match="Gold names task 99"):
        FirstColumns().fit(X, votes, gold={99: 1})


def test_rows_without_labels_are_said_and_get_the_classifiers_answer():
    X, votes, _ = crowd()
    labels = CrowdLabels.from_matrix(votes)
    more = np.vstack([X, [[1.0, 2.0]]])
    with pytest.warns(WisecrowdWarning, match="1 of 41 rows of X have no labels; FirstColumns"):
        model = FirstColumns().fit(more, labels)
    np.testing.assert_allclose(model.probas_[40], model.predict_proba([[1.0, 2.0]])[0])
    np.testing.assert_allclose(model.confusion_, FirstColumns().fit(X, labels).confusion_)


def test_bad_data():
    X, votes, _ = crowd(5)
    with pytest.raises(DataError, match="X has 5 rows and y has 4 rows"):
        FirstColumns().fit(X, votes[:4])
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(DataError, match="NaN in row 3, column 1"):
        FirstColumns().fit(bad, votes)
    labels = CrowdLabels.from_matrix(votes)
    with pytest.raises(DataError, match="no annotations"):
        FirstColumns().fit(X, labels.select_annotations(np.zeros(15, bool)))
    with pytest.raises(DataError, match="n_samples=1"):
        FirstColumns().fit(X[:1], votes[:1])


def test_a_second_fit_forgets_the_first():
    X, votes, _ = crowd()
    model = FirstColumns().fit(pd.DataFrame(X, columns=["a", "b"]), votes)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    model.fit(X, votes)
    assert not hasattr(model, "feature_names_in_")


def test_a_fit_that_fails_leaves_the_one_before():
    class Fails(FirstColumns):
        def _fit(self, training):
            learned = super()._fit(training)
            if training.labels.n_workers > 3:
                raise DataError("Four workers are too many; remove one.")
            return learned

    X, votes, _ = crowd()
    model = Fails().fit(X, votes)
    before = model.predict_proba(X, votes)
    with pytest.raises(DataError, match="too many"):
        model.fit(X[:20], np.hstack([votes, votes])[:20] + 5)
    np.testing.assert_array_equal(model.predict_proba(X, votes), before)


def test_a_fit_sees_nothing_of_the_one_before():
    class Nosy(FirstColumns):
        def _fit(self, training):
            assert set(vars(self)) == {"scale", "random_state"}
            return super()._fit(training)

    X, votes, _ = crowd()
    model = Nosy().fit(X, votes)
    assert model.fit(X, votes) is model


@pytest.mark.parametrize(
    ("valid", "message"),
    [
        ((np.eye(2), [0]), "2 rows and 1 classes"),
        ((np.eye(2), [0, 7]), "class 7, which is not among"),
        ((np.array([[np.inf, 0]]), [0]), "infinity in row 0"),
    ],
)
def test_bad_validation_sets(valid, message):
    X, votes, _ = crowd()
    with pytest.raises(DataError, match=message):
        FirstColumns().fit(X, votes, valid=valid)


# ----------------------------------------------------------------------------------------- predict


def test_predictions_from_features_and_from_both():
    X, votes, _ = crowd()
    model = FirstColumns().fit(X, votes)
    np.testing.assert_allclose(model.predict_proba(X), np.exp(model._log_probas(X)))
    np.testing.assert_allclose(model.predict_proba(X, votes), model.probas_)
    np.testing.assert_array_equal(model.predict(X, votes), model.labels_)
    rows = [5, 2]
    np.testing.assert_allclose(
        model.predict_proba(X[rows], CrowdLabels.from_matrix(votes)[rows]), model.probas_[rows]
    )


def test_labels_of_strangers_do_not_count_and_this_is_said():
    X, votes, _ = crowd()
    model = FirstColumns().fit(X, votes)
    labels = CrowdLabels.from_arrays([0, 0, 1], [0, 9, 9], [1, 1, 1])
    with pytest.warns(WisecrowdWarning, match="2 labels come from workers .* such as 9"):
        mixed = model.predict_proba(X[:2], labels)
    np.testing.assert_allclose(mixed[1], model.predict_proba(X[:2])[1])
    known = CrowdLabels.from_arrays([0], [0], [1], tasks=[0, 1])
    np.testing.assert_allclose(mixed, model.predict_proba(X[:2], known))


def test_bad_features_and_labels_at_prediction():
    X, votes, _ = crowd()
    with pytest.raises(NotFittedError, match=r"call fit\(X, labels\) first"):
        FirstColumns().predict(X)
    with pytest.raises(NotFittedError, match="no confusion_ yet"):
        FirstColumns().confusion_  # noqa: B018
    model = FirstColumns().fit(X, votes)
    with pytest.raises(DataError, match="X has 3 features, but FirstColumns is expecting 2"):
        model.predict(np.zeros((1, 3)))
    with pytest.raises(DataError, match="Label 5 was not among the classes"):
        model.predict(X[:1], CrowdLabels.from_arrays([0], [0], [5]))
    with pytest.raises(AttributeError, match="has no nonsense_"):
        model.nonsense_  # noqa: B018


def test_score_is_accuracy_on_classes_and_likelihood_on_a_crowd():
    X, votes, truth = crowd()
    model = FirstColumns().fit(X, votes)
    assert model.score(X, truth) == np.mean(model.predict(X) == truth)
    f = model.predict_proba(X)
    by_hand = np.mean(
        [np.log(f[i] @ model.confusion_[j, :, votes[i, j]]) for i in range(40) for j in range(3)]
    )
    assert model.score(X, CrowdLabels.from_matrix(votes)) == pytest.approx(by_hand)
    assert model.score(X, votes) == pytest.approx(by_hand)
    with pytest.raises(DataError, match="40 rows and y has 3 classes"):
        model.score(X, truth[:3])


# ------------------------------------------------------------------------------------ scikit-learn


def test_a_grid_search_over_a_crowd_chooses_by_its_likelihood():
    X, votes, _ = crowd(120)
    X = X + np.random.default_rng(1).normal(size=X.shape)  # so that it pays to be less than sure
    labels = CrowdLabels.from_matrix(votes)
    scales = [0.001, 1.0, 100.0]
    search = GridSearchCV(FirstColumns(), {"scale": scales}, cv=3).fit(X, labels)
    assert search.best_params_ == {"scale": 1.0}
    folds = np.array_split(np.arange(120), 3)
    for number, scale in enumerate(scales):
        values = []
        for fold in folds:
            rest = np.setdiff1d(np.arange(120), fold)
            model = FirstColumns(scale=scale).fit(X[rest], labels[rest])
            values.append(model.score(X[fold], labels[fold]))
        assert search.cv_results_["mean_test_score"][number] == pytest.approx(np.mean(values))
    assert search.best_estimator_.tasks_.tolist() == list(range(120))


def test_cross_validation_shuffles_rows_of_both_alike():
    from sklearn.model_selection import KFold

    X, votes, _ = crowd(60)
    labels = CrowdLabels.from_matrix(votes)
    splits = KFold(3, shuffle=True, random_state=0)
    mixed = cross_val_score(Raykar(), X, labels, cv=splits)
    assert mixed.min() > np.log(0.5)  # better than guessing: rows belong together


def test_clone_pickle_and_representation():
    X, votes, _ = crowd()
    model = FirstColumns(scale=2.0).fit(X, votes)
    copy = clone(model)
    assert copy.scale == 2.0
    assert not copy.__sklearn_is_fitted__()
    assert repr(model) == "FirstColumns(scale=2.0)"
    raykar = Raykar().fit(X, votes)
    again = pickle.loads(pickle.dumps(raykar))
    np.testing.assert_array_equal(again.predict_proba(X), raykar.predict_proba(X))
