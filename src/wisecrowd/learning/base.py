"""Learner: what all methods share that learn from features and a crowd, whatever they learn.

A learner of a kind of labels adds how annotations become rows, and how results become answers. A
method adds ``_fit`` and what it needs to predict. Nothing here needs torch.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.estimator import Estimator, exclusive_fit
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.core.features import as_features, is_dataset, is_sparse
from wisecrowd.core.findings import Finding, warn_of
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.saved_attributes import RECORDS, Saved, SavedArray, SavedValue, is_count
from wisecrowd.learning.training.rows_of_features import TASK_ROWS, RowWords

Data = TypeVar("Data", bound=Annotations)


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Validated input of a fit; the learners of a kind narrow the types.

    Attributes
    ----------
    X : (N, ...) array or dataset
    labels : Annotations
        Of the learner's kind. Task ``i``, or item ``i``, is row ``i`` of ``X``.
    gold : known answers, in the form of the kind
    valid : (X, truth), optional
        Features and known answers of the validation set that selects the epoch.
    resume : bool or None
        See :meth:`TaskLearner.fit`.
    """

    X: Any
    labels: Any
    gold: Any = None
    valid: tuple[Any, Any] | None = None
    resume: bool | None = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome:
    """What every fit results in; the learners of a kind add their estimates.

    Attributes
    ----------
    extra, private : dict
        Further results, published with a trailing underscore, and parts that predictions need,
        such as the network, published with a leading one.
    """

    n_iter: int = 1
    converged: bool = True
    history: tuple[dict[str, float], ...] = ()
    findings: tuple[Finding, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    private: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, repr=False, kw_only=True)
class Learner(Estimator):
    """Base class of all learners: a fit is published last, saved and checked.

    A method is a dataclass whose fields are its parameters, with ``_fit(training) -> Outcome``.

    Attributes
    ----------
    n_iter_, converged_, history_
    findings_ : tuple of Finding, what casts doubt on the result
    warnings_ : tuple of str, the texts of the findings
    """

    random_state: int | None = 0

    words: ClassVar[RowWords] = TASK_ROWS
    rows_are: ClassVar[str] = "tasks"
    without_labels: ClassVar[str] = ""  # what becomes of rows without annotations
    uses_unlabelled: ClassVar[bool] = False
    takes_sparse: ClassVar[bool] = False  # else sparse features become dense, if they fit
    streams: ClassVar[bool] = False  # whether the array of a mapped file is read in batches
    sklearn_type: ClassVar[str | None] = None
    saves: ClassVar[dict[str, Saved]] = {
        "history_": RECORDS,
        "n_features_in_": SavedValue(is_count, "a count", optional=True),
        "feature_names_in_": SavedArray("features", "id", optional=True),
    }

    # ---------------------------------------------------------------- overridden for a kind

    def _training(self, X: Any, y: Any, ids: Any, gold: Any, valid: Any, resume: Any) -> Any:
        """Return the validated input of a fit, a TrainingSet."""
        raise TypeError(f"{type(self).__name__} must define _training.")

    def _fit(self, training: Any) -> Any:
        """Return the Outcome of a fit to validated input."""
        raise TypeError(f"{type(self).__name__} must define _fit.")

    def _answer(self, training: Any, result: Any) -> tuple[Finding, ...]:
        """Set answers and worker quality as attributes; return what these show."""
        raise TypeError(f"{type(self).__name__} must define _answer.")

    # -------------------------------------------------------------------------------------- fit

    def _learn(
        self, X: Any, y: Any, ids: Any, gold: Any = None, valid: Any = None,
        resume: bool | None = False,
    ) -> Self:  # fmt: skip
        self._validate_parameters()
        features = as_features(X, sparse=self.takes_sparse, mapped=self.streams)
        training = self._training(features, y, ids, gold, valid, resume)
        with exclusive_fit(self):
            # A new object sees nothing of an earlier fit, and after an error self is unchanged.
            fresh = type(self)(**self.get_params(deep=False))
            fresh._publish(X, training, fresh._fit(training))
            self._forget()
            vars(self).update(vars(fresh))
        return self

    def _publish(self, X: Any, training: TrainingSet, result: Outcome) -> None:
        data = training.labels
        vars(self).update(data.attributes())
        vars(self).update({f"{name}_": value for name, value in result.extra.items()})
        vars(self).update({f"_{name}": value for name, value in result.private.items()})
        self._frame_library = data.frame_library
        shown = self._answer(training, result)
        self.n_iter_, self.converged_ = result.n_iter, result.converged
        self.history_ = result.history
        self.findings_ = (*self._bare_rows(data), *result.findings, *shown)
        self.warnings_ = tuple(map(str, self.findings_))
        if not is_dataset(X):
            self.n_features_in_ = int(training.X.shape[1])
            if hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns):
                self.feature_names_in_ = np.asarray(list(X.columns), dtype=object)
        warn_of(self.findings_, stacklevel=4)

    def _bare_rows(self, data: Annotations) -> list[Finding]:
        """Return a finding about rows of the features without annotations, if there are any."""
        words = self.words
        ids, bare = getattr(data, words.many), getattr(data, words.counts) == 0
        if not bare.any() or self.uses_unlabelled:
            return []
        text = (
            f"{int(bare.sum())} of {len(ids)} rows of X have no {words.fix}; {type(self).__name__} "
            f"{self.without_labels}"
        )
        name, affected = f"{words.many}-without-{words.fix}", tuple(ids[bare].tolist())
        return [Finding(name, "medium", float(bare.mean()), affected, text, "")]

    # ---------------------------------------------------------------------------------- predict

    def _checked(self, X: Any) -> Any:
        """Return features of the width of the fit."""
        self._require_fitted()
        return as_features(
            X, n_features=vars(self).get("n_features_in_"), owner=type(self).__name__,
            sparse=self.takes_sparse, mapped=self.streams,
        )  # fmt: skip

    def _by_known_workers(self, data: Data, what: str) -> Data:
        """Return annotations in the worker codes of the fit, without those of unknown workers."""
        codes = lookup(data.workers, self.workers_)
        strange = codes[data.worker] < 0
        if strange.any():
            first = data.workers[data.worker[strange]].tolist()[0]
            warnings.warn(
                f"{int(strange.sum())} {what} come from workers that were not in the fit, such as "
                f"{first!r}{suggestion(first, self.workers_)}, and do not count.",
                WisecrowdWarning,
                stacklevel=5,
            )
            data = data.select_annotations(~strange)
        worker = codes[data.worker].astype(np.int32)
        return replace(data, worker=worker, workers=self.workers_, worker_columns={})

    # -------------------------------------------------------------------------- files, manners

    def save(self, path: Any) -> None:
        """Save the fitted method to a folder; ``wisecrowd.load`` reads it."""
        from wisecrowd.storage import saved_methods

        self._require_fitted()
        saved_methods.save(self, path)

    def __sklearn_tags__(self) -> Any:
        """Return the estimator tags, for scikit-learn."""
        utils, name = importlib.import_module("sklearn.utils"), self.sklearn_type
        own = {} if name is None else {f"{name}_tags": getattr(utils, f"{name.title()}Tags")()}
        return utils.Tags(
            estimator_type=name,
            target_tags=utils.TargetTags(required=True),
            input_tags=utils.InputTags(sparse=True),
            **own,
        )


@dataclass(eq=False, repr=False, kw_only=True)
class TaskLearner(Learner):
    """Base class of learners whose rows of features are tasks."""

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        tasks: Any = None,
        gold: Any = None,
        valid: Any = None,
        resume: bool | None = False,
    ) -> Self:
        """Fit to features and annotations.

        Parameters
        ----------
        X : (N, d) or (N, channels, height, width) array, frame of numbers, or torch Dataset
            A sparse matrix is made dense if it fits into memory; Raykar takes it as it is.
        y : annotations of the learner's kind, in any form
            A container, a long frame, or a tuple of columns. Classes and numbers also come as a
            tasks × workers matrix, with NaN where there is none, or as (N,) values of one worker.
        tasks : (N,) ids, optional
            Task of each row of ``X``. Without it, tasks must be row numbers.
        gold : mapping from task to answer, (task, label) frame, or (N,) array
            Known answers, which the result keeps and the method learns from; None, or NaN for
            numbers, where nothing is known.
        valid : (X, y) with true answers, optional
            Validation set that selects the epoch.
        resume : bool, optional
            Resume from the checkpoint of an interrupted fit. None refuses to overwrite one.
        """
        return self._learn(X, y, tasks, gold, valid, resume)


@dataclass(eq=False, repr=False, kw_only=True)
class FlatLearner(Learner):
    """The part of a learner that has no network: rows of features are vectors, and no epochs."""

    inputs_of: ClassVar[str] = "coef_"  # the attribute whose last axis is the flattened row

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        # Features that are not vectors are flattened; only the size of their first axis is saved.
        features, inputs = sizes["features"], (np.shape(vars(self)[self.inputs_of]) or (0,))[-1]
        return {"inputs": inputs if features and inputs % features == 0 else features}

    def _as_matrix(self, X: Any) -> Any:
        """Return the (n, inputs) features in double precision, with flattened rows."""
        if is_dataset(X):
            raise DataError(
                f"{type(self).__name__} needs all features at once and X is a dataset; give an "
                "array of its items."
            )
        if is_sparse(X):
            return X.astype(np.float64)
        return np.asarray(X, dtype=np.float64).reshape(len(X), -1)

    def _new_matrix(self, X: Any) -> Any:
        """Return the features of new rows, as many per row as those of the fit."""
        flat, inputs = self._as_matrix(X), np.shape(vars(self)[self.inputs_of])[-1]
        if flat.shape[1] != inputs:
            raise DataError(
                f"Each row of X has {flat.shape[1]} numbers and {type(self).__name__} is expecting "
                f"{inputs}; give features of the shape that the fit had."
            )
        return flat

    def _refuse_to_resume(
        self, training: TrainingSet, why: str = "writes no checkpoints to resume from"
    ) -> None:
        if training.resume:
            raise ParameterError(f"{type(self).__name__} {why}; fit without resume.")

    def _unused(self, training: TrainingSet) -> tuple[Finding, ...]:
        """Return a finding about a validation set: there is nothing that it could choose."""
        if training.valid is None:
            return ()
        return (
            Finding(
                "validation-set-not-used", "medium", 1.0, (),
                f"{type(self).__name__} has no epochs to choose among; the validation set was not "
                "used.", "",
            ),
        )  # fmt: skip
