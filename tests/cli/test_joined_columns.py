"""Tasks of several columns on the command line."""

from __future__ import annotations

import json


def test_repeats_name_the_part_that_is_missing(cli, tmp_path):
    path = tmp_path / "many.csv"
    rows = [f"p{i},{s},{j},{'ab'[(i + (s == 'x')) % 2]}"
            for i in range(20) for s in "xy" for j in ("ann", "bob")]  # fmt: skip
    path.write_text("prompt_id,system,judge,label\n" + "\n".join(rows) + "\n")
    code, _, err = cli("aggregate", str(path), "-q")
    assert code == 3
    assert "--task prompt_id,system" in err
    code, out, _ = cli("aggregate", str(path), "--task", "prompt_id,system", "-q")
    assert code == 0
    assert "p0 | x,b" in out


def test_estimates_by_a_part_of_the_task(cli, tmp_path):
    answers, known = tmp_path / "answers.csv", tmp_path / "known.csv"
    rows = [f"p{i},{s},{j},{'ab'[(i // (1 + (s == 'x'))) % 2]}"
            for i in range(40) for s in "xy" for j in ("ann", "bob")]  # fmt: skip
    answers.write_text("prompt_id,system,judge,label\n" + "\n".join(rows) + "\n")
    gold = [f"p{i},{s},{'ab'[i % 2]}" for i in range(20) for s in "xy"]
    known.write_text("prompt_id,system,label\n" + "\n".join(gold) + "\n")
    code, out, err = cli(
        "estimate", answers, "--task", "prompt_id,system", "--known", known, "--by", "system",
        "-m", "majority-vote", "--json", "-q",
    )  # fmt: skip
    assert (code, err) == (0, "")
    found = json.loads(out)["estimate"]
    assert {row["group"] for row in found} >= {"x", "y"}
    assert {row["n"] for row in found if row["group"] in ("x", "y")} == {20}
