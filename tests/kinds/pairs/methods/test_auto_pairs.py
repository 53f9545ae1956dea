"""AutoPairs: the choice and its reasons, attributes of the chosen model, names, packs."""

from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.aggregation import AutoPairs, BradleyTerry, CrowdBT, Davidson, WorkerTies
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference.held_out import paired_difference
from wisecrowd.kinds.pairs.methods import auto_pairs
from wisecrowd.kinds.pairs.methods.auto_pairs import SIDED, WITH_TIES, WITHOUT_TIES
from wisecrowd.kinds.pairs.outcomes import OUTCOMES
from wisecrowd.kinds.pairs.scorer import by_worker, held_out_votes
from wisecrowd.simulate import VoteWorkers, votes

ADVERSARIES = VoteWorkers(adversaries=0.3)


def of_one_worker(n=40):
    return votes(4, 1, n, random_state=0).pairs


def test_adversaries_make_it_take_reliabilities():
    made = votes(10, 30, 1500, ADVERSARIES, random_state=0)
    fit = AutoPairs().fit(made.pairs)
    assert fit.chosen_ == "crowd-bt"
    assert fit.reason_.startswith("crowd-bt predicts held-out votes better than bradley-terry")
    alone = CrowdBT().fit(made.pairs)
    assert np.array_equal(fit.scores_, alone.scores_)
    assert np.array_equal(fit.reliability_, alone.reliability_)
    assert np.array_equal(fit.predict_proba(made.pairs), alone.predict_proba(made.pairs))
    assert "reliability" in fit.worker_columns()


def test_lead_is_that_of_the_same_folds():
    made = votes(10, 30, 1500, ADVERSARIES, random_state=0)
    table = AutoPairs().fit(made.pairs).held_out_
    assert tuple(table) == WITHOUT_TIES
    scores = [by_worker(held_out_votes(one().fit, made.pairs)) for one in (CrowdBT, BradleyTerry)]
    lead, error = paired_difference(*scores)
    assert table["crowd-bt"]["lead"] == pytest.approx(lead)
    assert table["crowd-bt"]["lead_error"] == pytest.approx(error)


def test_ties_of_single_workers_make_it_take_worker_ties():
    people = VoteWorkers(tie_level=-0.5, tie_spread=1.5, side_spread=1.0)
    made = votes(6, 20, 900, people, random_state=1)
    fit = AutoPairs().fit(made.pairs)
    assert tuple(fit.held_out_) == WITH_TIES
    assert fit.chosen_ == "worker-ties"
    assert np.array_equal(fit.side_, WorkerTies().fit(made.pairs).side_)


def test_a_common_side_makes_it_take_the_side():
    made = votes(6, 20, 900, VoteWorkers(side=0.8), random_state=2)
    fit = AutoPairs(candidates=["bradley-terry", SIDED]).fit(made.pairs)
    assert fit.chosen_ == SIDED
    assert fit.members_[0].side_bias_ > 0.4


def test_honest_votes_keep_the_first():
    fit = AutoPairs().fit(votes(8, 15, 500, random_state=3).pairs)
    assert fit.chosen_ == "bradley-terry"
    assert "no other model leads" in fit.reason_
    assert not hasattr(fit, "reliability_")


def test_few_votes_keep_the_first():
    fit = AutoPairs().fit((["a", "b"], ["x", "y"], ["y", "z"], ["left", "tie"]))
    assert (fit.chosen_, fit.held_out_) == ("davidson", {})
    assert "too few to choose by" in fit.reason_


def test_one_worker_is_judged_over_votes():
    table = AutoPairs().fit(of_one_worker()).held_out_
    assert table["bradley-terry"]["standard_error"] > 0
    assert table["crowd-bt"]["lead_error"] > 0


def test_one_candidate_is_that_method():
    pairs = votes(5, 10, 200, VoteWorkers(tie_level=-1.0), random_state=4).pairs
    fit = AutoPairs(candidates=["davidson"]).fit(pairs)
    assert fit.reason_ == "davidson is the only candidate"
    assert np.array_equal(fit.scores_, Davidson().fit(pairs).scores_)


def test_refits_keep_the_choice():
    made = votes(10, 30, 1500, ADVERSARIES, random_state=0)
    fit = AutoPairs().fit(made.pairs)
    assert fit._for_refit().candidates == ["crowd-bt"]
    assert AutoPairs()._for_refit().candidates == "auto"


@pytest.mark.parametrize("names", ["crowd-bt", [], ["auto-pairs"], ["dawid-skene"], 3])
def test_wrong_candidates_are_refused(names):
    with pytest.raises(ParameterError, match="candidates"):
        AutoPairs(candidates=names).fit(of_one_worker())


def test_many_votes_are_chosen_on_whole_workers(monkeypatch):
    monkeypatch.setattr(auto_pairs, "SAMPLE", 600)
    pairs = votes(6, 30, 1500, random_state=5).pairs
    part = auto_pairs._sample(pairs)
    assert part.n_annotations <= 600
    kept = np.bincount(part.worker, minlength=30)
    assert set(kept[kept > 0]) <= set(pairs.labels_per_worker.tolist())
    assert (kept[kept > 0] == pairs.labels_per_worker[kept > 0]).all()
    fit = AutoPairs().fit(pairs)
    assert "chosen-on-a-sample" in {finding.id for finding in fit.findings_}
    assert auto_pairs._sample(of_one_worker(900)).n_annotations == 600


def test_a_pack_says_what_was_not_done(tmp_path):
    pairs = votes(6, 20, 600, random_state=6).pairs
    columns = (pairs.items[pairs.left], pairs.items[pairs.right], pairs.workers[pairs.worker],
               np.array(OUTCOMES)[pairs.outcome])  # fmt: skip
    rows = [
        "left,right,worker,label",
        *(",".join(map(str, row)) for row in zip(*columns, strict=True)),
    ]
    (tmp_path / "votes.csv").write_text("\n".join(rows))
    wc.pack(tmp_path / "votes.csv", tmp_path / "votes.pack", type="pairs")
    found = wc.fit_pack(AutoPairs(), tmp_path / "votes.pack", tmp_path / "ranking")
    assert "nothing-chosen" in {finding.id for finding in found.fit.findings}
    plain = BradleyTerry().fit(pairs)
    scores = found.fit.probas.scores
    assert np.allclose(np.sort(scores), np.sort(plain.scores_), atol=1e-9)
    method = AutoPairs(candidates=["crowd-bt"])
    with pytest.raises(ParameterError, match="all votes in memory"):
        wc.fit_pack(method, tmp_path / "votes.pack", tmp_path / "other")
