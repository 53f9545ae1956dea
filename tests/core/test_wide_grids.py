"""Wide tables with several questions per worker are recognised, those of workers are not."""

from __future__ import annotations

import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.wide_grids import find_grid

QUESTIONS = ("effusion", "nodule", "size_mm")


def names(form, workers=("R1", "R2", "R3")):
    return [form.format(w=worker, q=question) for worker in workers for question in QUESTIONS]


@pytest.mark.parametrize(
    "form",
    ["{w}_{q}", "{q}_{w}", "{w} {q}", "{w}.{q}", "{w}-{q}", "{q} ({w})", "{q} [{w}]", "{w}: {q}"],
)
@pytest.mark.parametrize(
    "workers", [("R1", "R2", "R3"), ("Reader1", "Reader2"), ("ann", "bob"), ("rater 1", "rater 2")]
)
def test_questions_of_workers(form, workers):
    grid = find_grid(["case", *names(form, workers), "comment"])
    assert grid is not None
    assert sorted(map(len, grid.values())) in ([len(workers)] * 3, [3] * len(workers))


@pytest.mark.parametrize(
    "columns",
    [
        ["rater_1", "rater_2", "rater_3"],
        ["expert_1", "expert_2", "crowd_1", "crowd_2"],
        ["novice_1", "novice_2", "expert_1", "expert_2"],
        ["gpt_4", "gpt_5", "claude_3", "claude_4"],
        ["ann smith", "bob jones", "cem kaya"],
        ["ann_k", "bob_k", "cem_w"],
        ["A", "B", "C"],
        ["w1", "w2", "w10"],
        ["worker-1-2020", "worker-2-2020"],
    ],
)
def test_workers(columns):
    assert find_grid(["id", "text", *columns]) is None


def table(form="{w}_{q}"):
    values = {name: ["0", "1", "1", "0", "1", "0"] for name in names(form)}
    return {"case": list("abcdef"), **values}


@pytest.mark.parametrize("kind", ["labels", "sets", "numbers", "texts"])
def test_they_are_refused_in_files(tmp_path, kind):
    lines = [list(table()), *zip(*table().values(), strict=True)]
    path = tmp_path / "a.csv"
    path.write_text("".join(",".join(line) + "\n" for line in lines))
    with pytest.raises(DataError, match=r"answers of 3 workers to 3 questions.*'R3_effusion'"):
        wc.read(path, wide=True, type=kind)
    read = wc.read(path, type=kind, worker_columns=["R1_nodule", "R2_nodule", "R3_nodule"])
    assert read.n_workers == 3
    assert wc.read(path, type=kind, worker_columns=names("{w}_{q}")).n_workers == 9


def test_they_are_refused_in_frames():
    with pytest.raises(DataError, match="3 workers to 3 questions"):
        wc.CrowdLabels.from_frame(table(), wide=True)


def test_a_question_beside_measures_is_read():
    """Columns of other content than labels do not make a second question."""
    columns = {f"worker_{j}_label": list("abababab") for j in (1, 2)}
    columns |= {f"worker_{j}_time": [f"{j}{i}.5" for i in range(8)] for j in (1, 2)}
    read = wc.CrowdLabels.from_frame({"id": list("12345678"), **columns}, wide=True)
    assert read.workers.tolist() == ["worker_1_label", "worker_2_label"]
