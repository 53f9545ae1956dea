"""Files of models, parameters and statistics: the same values, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.inference.priors import OneCoinPrior
from wisecrowd.kinds.classes.families.confusion import ConfusionParams, ConfusionStats
from wisecrowd.kinds.classes.methods.dawid_skene import DirichletModel
from wisecrowd.packs.files import Entry, Journal
from wisecrowd.packs.values import digest_of_values, read_values, write_values

MODEL = DirichletModel(n_workers=2, n_classes=2, fixed_class=None, alpha=np.eye(2))
PARAMS = ConfusionParams(np.log([[0.1, 0.9]]), np.zeros(2), -np.inf, {"prior": OneCoinPrior(1, 2)})


def test_values_come_back_as_they_were(tmp_path):
    stats = ConfusionStats(np.arange(6.0).reshape(2, 3), np.empty(0), 0.1)
    write_values(tmp_path / "a", (MODEL, "step", PARAMS, stats))
    model, step, params, found = read_values(tmp_path / "a", verify=True)
    assert type(model) is DirichletModel
    assert (model.n_workers, model.fixed_class, step) == (2, None, "step")
    np.testing.assert_array_equal(params.table, PARAMS.table)
    assert params.log_prior == -np.inf
    assert params.extra["prior"] == OneCoinPrior(1, 2)
    assert isinstance(found, ConfusionStats)
    np.testing.assert_array_equal(found.counts, stats.counts)
    assert found.mass.shape == (0,)
    found.counts[0, 0] = 9.0  # in memory only
    assert read_values(tmp_path / "a")[3].counts[0, 0] == 0.0
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_digests_tell_values_apart():
    same = DirichletModel(n_workers=2, n_classes=2, fixed_class=None, alpha=np.eye(2))
    other = DirichletModel(n_workers=2, n_classes=2, fixed_class=None, alpha=2 * np.eye(2))
    assert digest_of_values(MODEL) == digest_of_values(same)
    assert digest_of_values(MODEL) != digest_of_values(other)


@pytest.mark.parametrize("keep", [0, 30, 0.9])
def test_a_damaged_file_is_an_error(keep, tmp_path):
    write_values(tmp_path / "a", PARAMS)
    data = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(data[: keep if keep > 1 else int(keep * len(data))])
    with pytest.raises(DataError, match="is damaged"):
        read_values(tmp_path / "a", verify=True)


def test_other_classes_are_refused(tmp_path):
    write_values(tmp_path / "a", PARAMS)
    text = (tmp_path / "a").read_bytes()
    evil = text.replace(
        b"wisecrowd.kinds.classes.families.confusion:ConfusionParams", b"subprocess:Popen"
    )
    (tmp_path / "a").write_bytes(evil)
    with pytest.raises(DataError, match="subprocess is not a module of wisecrowd"):
        read_values(tmp_path / "a")
    plain = text.replace(b"families.confusion:ConfusionParams", b"families.confusion:ConfusionEM")
    (tmp_path / "a").write_bytes(plain)
    with pytest.raises(DataError, match="is not a class of values"):
        read_values(tmp_path / "a")
    with pytest.raises(ParameterError, match="Cannot save value"):
        write_values(tmp_path / "b", object())


def test_a_damaged_pass_is_not_finished(tmp_path):
    journal = Journal(tmp_path / "passes", resume=False)
    journal.add(1, "key", ConfusionStats(np.ones(3), np.ones(2), 1.0))
    assert isinstance(journal.find(1, "key", "wisecrowd"), Entry)
    file = next((tmp_path / "passes").iterdir())
    file.write_bytes(file.read_bytes()[:-8] + b"\1" * 8)
    assert journal.find(1, "key", "wisecrowd") is None
    assert journal.find(2, "key", "wisecrowd") is None
