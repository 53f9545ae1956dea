from __future__ import annotations

import dataclasses
import inspect
import json

import numpy as np
import pytest

from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import DataError, FindingWarning, ParameterError, WisecrowdError
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.inference import priors
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.storage.models import index_digest
from wisecrowd.storage.saved_methods import PRIORS, load, save


def crowd(seed: int = 1, n_tasks: int = 40) -> CrowdLabels:
    """Two skewed classes, five workers of unequal quality, text ids."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n_tasks) < 0.3
    quality = np.array([0.95, 0.9, 0.8, 0.7, 0.6])
    right = rng.random((n_tasks, 5)) < quality
    task, worker = np.nonzero(rng.random((n_tasks, 5)) < 0.8)
    label = np.where(right, truth[:, None], ~truth[:, None])[task, worker]
    return CrowdLabels.from_arrays(
        [f"t{i}" for i in task], [f"w{j}" for j in worker], np.where(label, "yes", "no")
    )


def make(name: str) -> Aggregator:
    """Return a method with its defaults; one that wraps another gets Dawid-Skene."""
    cls = get_method(name)
    required = [
        p.name
        for p in inspect.signature(cls.__init__).parameters.values()
        if p.default is p.empty and p.name != "self" and p.kind != p.VAR_KEYWORD
    ]
    return cls(**{parameter: DawidSkene() for parameter in required})


def same(a, b) -> bool:
    """Equal values of equal type, however deep."""
    if isinstance(a, Aggregator):
        return type(a) is type(b) and same(vars_of(a), vars_of(b))
    if dataclasses.is_dataclass(a):
        return type(a) is type(b) and same(
            [getattr(a, f.name) for f in dataclasses.fields(a)],
            [getattr(b, f.name) for f in dataclasses.fields(b)],
        )
    if hasattr(a, "toarray"):
        return same(a.toarray(), b.toarray())
    if isinstance(a, np.ndarray):
        if a.dtype == object:
            return a.shape == b.shape and a.ravel().tolist() == b.ravel().tolist()
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def vars_of(method: Aggregator) -> dict:
    learned = {k: v for k, v in vars(method).items() if k.endswith("_") and k[0] != "_"}
    return {**method.get_params(deep=False), **learned}


@pytest.mark.parametrize("name", method_names())
def test_every_method_comes_back_as_it_was(name, tmp_path):
    model = make(name).fit(crowd())
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")

    assert type(loaded) is type(model)
    assert same(vars_of(model), vars_of(loaded))
    if model.tags().inductive:
        new = crowd(seed=2)
        assert same(model.predict_proba(new), loaded.predict_proba(new))
        assert loaded.predict(new).tolist() == model.predict(new).tolist()
    assert loaded.task_columns().keys() == model.task_columns().keys()


def test_prior_objects_and_arrays_are_parameters(tmp_path):
    for number, prior in enumerate(
        [
            None,
            0.5,
            np.array([[3.0, 1.0], [1.0, 3.0]]),
            priors.WeakDiagonal(3.0),
            priors.DirichletRows([[3, 1], [1, 3]]),
            priors.History(DawidSkene().fit(crowd()), strength=5.0),
        ]
    ):
        model = DawidSkene(prior=prior).fit(crowd())
        save(model, tmp_path / str(number))
        loaded = load(tmp_path / str(number))
        assert same(vars_of(model), vars_of(loaded))
        # The prior works as before, not only looks so.
        assert same(loaded.fit(crowd(seed=3)).probas_, model.fit(crowd(seed=3)).probas_)


def test_every_prior_class_can_be_saved():
    known = {
        name
        for name, value in vars(priors).items()
        if dataclasses.is_dataclass(value) and value.__module__ == priors.__name__
    }
    assert known <= set(PRIORS), "add the new prior to storage.saved_methods.PRIORS"


@pytest.mark.parametrize("generator", [np.random.default_rng(0), np.random.RandomState(0)])
def test_random_generator_is_refused(generator, tmp_path):
    model = DawidSkene().fit(crowd())
    model.random_state = generator
    with pytest.raises(ParameterError, match=r"random_state.*integer seed"):
        save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_unfitted_method_is_refused(tmp_path):
    with pytest.raises(WisecrowdError, match="fit"):
        DawidSkene().save(tmp_path / "model")


def test_method_of_somebody_else_is_refused(tmp_path):
    class Own(DawidSkene):
        """A method that the registry does not know."""

    with pytest.raises(ParameterError, match="Cannot save Own"):
        save(Own().fit(crowd()), tmp_path / "model")


def test_unstorable_parameter_is_named(tmp_path):
    model = DawidSkene().fit(crowd())
    model.prior = object()
    with pytest.raises(ParameterError, match=r"parameters\.prior"):
        save(model, tmp_path / "model")


def test_reserved_key_is_refused(tmp_path):
    model = DawidSkene().fit(crowd())
    model.prior = {"$method": "dawid-skene"}
    with pytest.raises(ParameterError, match=r"\$method"):
        save(model, tmp_path / "model")


# ------------------------------------------------------------------------------------ hostile files


def rewritten(tmp_path, change) -> object:
    """Save a model, change its JSON, and return the folder."""
    folder = tmp_path / "model"
    save(DawidSkene(prior=priors.WeakDiagonal()).fit(crowd()), folder)
    index = json.loads((folder / "model.json").read_text())
    change(index)
    index["digest"] = index_digest(index)  # as somebody who means harm would
    (folder / "model.json").write_text(json.dumps(index))
    return folder


def item(encoded: dict, key: str) -> list:
    """Return the [key, value] pair of an encoded mapping."""
    return next(pair for pair in encoded["items"] if pair[0] == key)


def set_kind(index):
    index["kind"] = "os.system"


def set_prior_class(index):
    prior = item(index["state"]["parameters"], "prior")[1]
    item(prior, "$prior")[1] = "as_row_prior"


def set_prior_field(index):
    prior = item(index["state"]["parameters"], "prior")[1]
    item(item(prior, "fields")[1], "strength")[0] = "weakness"


def set_unknown_parameter(index):
    item(index["state"]["parameters"], "tol")[0] = "tolerance"


def set_private_name(index):
    index["state"]["__class___"] = 1


def set_no_parameters(index):
    del index["state"]["parameters"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (set_kind, "no method 'os.system'"),
        (set_prior_class, "'as_row_prior' is not a prior"),
        (set_prior_field, "weakness"),
        (set_unknown_parameter, "tolerance"),
        (set_private_name, "'__class___' is not the name"),
        (set_no_parameters, "does not describe"),
    ],
)
def test_a_file_can_only_name_what_is_known(change, reason, tmp_path):
    folder = rewritten(tmp_path, change)
    with pytest.raises(DataError, match=r"^Cannot load the method at .*") as caught:
        load(folder)
    assert reason in str(caught.value)
    assert str(caught.value).endswith("fit it again.")


def test_not_a_model(tmp_path):
    with pytest.raises(DataError, match="no model"):
        load(tmp_path / "nothing")


def test_mixed_priors_are_saved(tmp_path):
    labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    parts = [priors.OneCoinPrior(3, 1), priors.Discrete([0.5, 0.2], [1, 2])]
    prior = priors.MixturePrior(parts, [0.7, 0.3])
    model = get_method("belief-propagation")(prior=prior).fit(labels)
    model.save(tmp_path / "model")
    back = load(tmp_path / "model")
    assert isinstance(back.prior, priors.MixturePrior)
    np.testing.assert_allclose(back.fit(labels).probas_, model.probas_)


def copied_sheets(workers: list) -> CrowdLabels:
    """Return a crowd in which the last worker gives exactly the labels of the second."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (300, 1))
    table = np.where(rng.random((300, 7)) < 0.7, truth, 1 - truth)
    table[:, 6] = table[:, 1]
    task, worker = np.indices(table.shape)
    return CrowdLabels.from_arrays(task.ravel(), np.array(workers)[worker.ravel()], table.ravel())


@pytest.mark.parametrize(
    "workers",
    [
        list("abcdefg"),
        list(range(7)),
        [np.datetime64("2024-05-01T12", "us") + np.timedelta64(j, "us") for j in range(7)],
    ],
)
def test_findings_come_back_with_their_ids(workers, tmp_path):
    labels = copied_sheets(workers)
    with pytest.warns(FindingWarning, match="gave exactly the labels"):
        model = MajorityVote().fit(labels)
    assert model.findings_[0].affected == (labels.workers.tolist()[1], labels.workers.tolist()[6])
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.findings_ == model.findings_
    assert loaded.warnings_ == tuple(str(finding) for finding in loaded.findings_)


def test_models_saved_without_findings_load(tmp_path):
    model = DawidSkene().fit(crowd())
    del model.findings_
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").warnings_ == model.warnings_


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"severity": "worst"}, "severity is 'worst'"),
        ({"score": "much"}, "findings_ is .* not a tuple of findings"),
        ({"more": 1}, "unexpected keyword argument 'more'"),
    ],
)
def test_damaged_findings_are_refused(change, reason, tmp_path):
    model = MajorityVote().fit(copied_sheets(list("abcdefg")))
    model.save(tmp_path / "model")
    index = json.loads((tmp_path / "model" / "model.json").read_text())
    (finding,) = index["state"]["findings_"]["items"]
    parts = item(finding, "$finding")[1]
    parts["items"] = [*(pair for pair in parts["items"] if pair[0] not in change), *change.items()]
    index["digest"] = index_digest(index)
    (tmp_path / "model" / "model.json").write_text(json.dumps(index))
    with pytest.raises(DataError, match=reason):
        load(tmp_path / "model")
