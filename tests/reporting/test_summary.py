from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from wisecrowd.aggregation import Auto, DawidSkene, MajorityVote
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.reporting import study as study_module
from wisecrowd.reporting.document import summary_of
from wisecrowd.reporting.sections import SECTIONS
from wisecrowd.reporting.study import study_crowd


def test_is_plain_data_with_a_version(summary):
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert (summary["schema"], summary["version"]) == ("wisecrowd-report", 2)
    wanted = [name for name in SECTIONS if "groups" not in name]  # there are no attributes
    assert wanted == [name for name in summary if name in SECTIONS]


def test_verdict_is_measured_by_the_truth(summary, labels, truth):
    fit = Auto().fit(labels)
    verdict = summary["verdict"]
    assert verdict["measured"]["value"] == pytest.approx(fit.score(labels, truth))
    assert "all 200 tasks checked" in verdict["measured"]["text"]  # nothing is left to estimate
    assert verdict["measured"]["low"] == verdict["measured"]["high"]
    assert verdict["mean_confidence"] == pytest.approx(fit.confidence_.mean())
    assert verdict["n_labels"] == labels.n_annotations == 1600
    assert verdict["spend"] == {
        "total": pytest.approx(80), "per_task": pytest.approx(0.4), "n_missing": 0,
    }  # fmt: skip
    assert verdict["certain"] == np.mean(fit.confidence_ >= 0.9)


def test_findings_come_with_commands_that_read_the_file_the_same_way(summary):
    by_id = {step["id"]: step for step in summary["next"]}
    spammers = by_id["spammers"]  # without whom known classes are predicted better
    assert spammers["remedy"] == "Leave their labels out, and give them no more tasks."
    assert "measured on known classes, with log loss" in spammers["effect"]["text"]
    assert spammers["command"].startswith("wisecrowd audit 'my answers.csv' --prune-to cleaned.csv")
    assert spammers["command"].endswith("--task image")
    assert by_id["collusion"]["affected"] == ["13", "14", "15"]
    order = [step["severity"] for step in summary["next"]]
    assert order == sorted(order, key=["high", "medium", "low", "info"].index)


def test_workers_have_quality_flags_confusion_and_drift(summary, study):
    rows = {row["worker"]: row for row in summary["workers"]["rows"]}
    assert "collusion" in rows["14"]["flags"]
    assert "spammers" in rows["11"]["flags"]
    assert rows["0"]["flags"] == []
    j = study.labels.workers.tolist().index(0)
    assert rows["0"]["accuracy"] == pytest.approx(
        study.audit["workers"].columns["accuracy"][j], abs=1e-4
    )
    expected = np.rint(100 * study.fit.confusion_[j]).astype(int).tolist()
    assert rows["0"]["confusion"]["percent"] == expected
    assert sum(rows["0"]["confusion"]["met"]) == rows["0"]["n_labels"]
    assert len(rows["0"]["drift"]) == 6
    assert np.mean(rows["0"]["drift"]) > np.mean(rows["11"]["drift"])


def test_divided_tasks_by_brute_force(summary, labels):
    table = labels.to_dict()
    votes = {}
    for task, label in zip(table["task"].tolist(), table["label"].tolist(), strict=True):
        votes.setdefault(task, Counter())[label] += 1

    def entropy(counts):
        share = np.array(list(counts.values())) / sum(counts.values())
        return float(-(share * np.log2(share)).sum())

    found = summary["tasks"]
    assert found["total"] == sum(len(counts) > 1 for counts in votes.values())
    assert found["n_unanimous"] == sum(len(counts) == 1 for counts in votes.values())
    assert sum(level["count"] for level in found["levels"]) == labels.n_tasks
    top = sorted((entropy(counts) for counts in votes.values()), reverse=True)[:100]
    assert [row["entropy"] for row in found["rows"]] == pytest.approx(top, abs=1e-3)
    first = found["rows"][0]
    assert dict(map(tuple, first["votes"])) == {
        str(label): n for label, n in votes[int(first["task"])].items()
    }


def test_confused_classes_by_brute_force(summary, study):
    labels = study.labels
    counts = np.zeros((3, 3))
    for i, label in zip(labels.task, labels.label, strict=True):
        counts[study.chosen[i], label] += 1
    share = counts / counts.sum(axis=1, keepdims=True)
    assert summary["classes"]["matrix"] == np.rint(100 * share).astype(int).tolist()
    first = summary["classes"]["pairs"][0]
    off = counts - np.diag(np.diag(counts))
    k, label = np.unravel_index(off.argmax(), off.shape)
    assert (first["class"], first["label"], first["count"]) == (str(k), str(label), off.max())


def test_network_has_the_colluders(summary):
    found = summary["network"]
    assert {node["worker"] for node in found["graph"]["nodes"]} >= {"13", "14", "15"}
    assert ["13", "14", "15"] in [group["workers"] for group in found["groups"]]
    assert found["n_linked"] == sum(row["linked"] for row in found["rows"])


def test_caps_are_said(labels, study, monkeypatch):
    from wisecrowd.reporting import workers

    monkeypatch.setattr(workers, "MOST_WORKERS", 6)
    monkeypatch.setattr(workers, "MOST_CELLS", 18)
    found = workers.workers(study)
    assert (found["n_shown"], found["total"], found["n_detailed"]) == (6, 16, 2)
    assert sum(bool(row["flags"]) for row in found["rows"]) >= 3  # those first
    assert all(row["flags"] for row in found["rows"] if row["confusion"])


def test_many_classes_list_mistakes_instead_of_matrices(monkeypatch, study):
    from wisecrowd.reporting import tasks, workers

    monkeypatch.setattr(workers, "MOST_CLASSES", 2)
    monkeypatch.setattr(tasks, "WIDEST_MATRIX", 2)
    assert tasks.confused_classes(study)["matrix"] is None
    found = workers.workers(study)
    labels = study.labels
    row = found["rows"][0]
    j = [str(w) for w in labels.workers].index(row["worker"])
    own = labels.worker == j
    wrong = Counter(
        (str(study.chosen[i]), str(label))
        for i, label in zip(labels.task[own], labels.label[own], strict=True)
        if study.chosen[i] != label
    )
    assert [n for *_, n in row["confusion"]["mistakes"]] == [n for _, n in wrong.most_common(6)]
    assert all(wrong[a, b] == n for a, b, n in row["confusion"]["mistakes"])


def test_gold_is_used_by_the_fit_and_judges_the_fit_without_it(labels, truth):
    gold = {task: truth[task] for task in range(40)}
    study = study_crowd(labels, gold=gold)
    assert study.fit.labels_[:40].tolist() == [truth[i] for i in range(40)]
    assert np.array_equal(study.blind.labels_, Auto().fit(labels).labels_)
    assert len(study.scored) == 40
    assert study.audit["confidence"].n_gold == 40


def test_a_fit_of_other_labels_is_refused(labels):
    with pytest.raises(DataError, match="give the fit of these labels"):
        study_crowd(labels, fit=DawidSkene().fit(labels[:50]))
    with pytest.raises(ParameterError, match="not fitted"):
        study_crowd(labels, fit=DawidSkene())
    with pytest.raises(ParameterError, match="give truth"):
        study_crowd(labels, fit=DawidSkene().fit(labels), gold={0: 0})


def test_any_method_and_the_smallest_crowds():
    import wisecrowd as wc

    tiny = wc.CrowdLabels.from_arrays(["t"], ["w"], ["a"])
    summary = summary_of(study_crowd(tiny, method=MajorityVote()))
    assert summary["verdict"]["n_labels"] == 1
    assert summary["budget"] is None
    assert summary["network"]["reason"]


def test_very_many_classes_do_without_confusion_matrices():
    import wisecrowd as wc

    rng = np.random.default_rng(0)
    task, worker = np.divmod(np.arange(1200), 6)
    label = np.where(rng.random(1200) < 0.7, task % 600, rng.integers(0, 600, 1200))
    crowd = wc.CrowdLabels.from_arrays(task, worker, label, workers=range(100), classes=range(800))
    summary = summary_of(study_crowd(crowd, method="majority-vote"))
    assert summary["budget"] is None
    assert "dawid-skene" in summary["methods"]["left_out"]
    assert summary["verdict"]["agreement"]["value"] > 0.3
    assert summary["workers"]["rows"][0]["confusion"]["mistakes"]


def test_a_classifier_that_learned_from_features(labels, truth):
    from wisecrowd.learning import Raykar

    X = np.eye(3)[[truth[i] for i in range(labels.n_tasks)]]
    fit = Raykar().fit(X, labels)
    summary = summary_of(study_crowd(labels, fit=fit, truth=truth))
    assert summary["verdict"]["method"] == "raykar"
    assert summary["verdict"]["mean_confidence"] == pytest.approx(fit.confidence_.mean())
    right = fit.labels_ == [truth[i] for i in range(labels.n_tasks)]
    assert summary["verdict"]["measured"]["value"] == pytest.approx(np.mean(right))
    assert "busiest worker" in fit._repr_html_()


def test_large_crowds_are_audited_with_less_effort(labels, monkeypatch):
    assert study_module.audit_options(labels) == {}
    monkeypatch.setattr(study_module, "LARGE", 100)
    assert set(study_module.audit_options(labels)) == {"agreement"}
    study = study_crowd(labels)
    assert "groups" in study.audit.skipped
    assert len(summary_of(study)["health"]["shortcuts"]) == 1
