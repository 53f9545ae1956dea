"""Crowds that are large in one dimension: answered in time, or refused before the work starts."""

from __future__ import annotations

import numpy as np
from tests.support.attacks.attack import Attack

OUTPUT = ("-q", "-o", "out.csv")


def _rankings(n_items: int) -> str:
    rng = np.random.default_rng(0)
    rows = [" > ".join(f"i{a}" for a in rng.permutation(n_items)) for _ in range(3)]
    return "worker,ranking\n" + "".join(f"w{w},{row}\n" for w, row in enumerate(rows))


def _boxes(n_boxes: int, side: float) -> str:
    rng = np.random.default_rng(0)
    at = np.hstack([rng.uniform(0, side, (n_boxes, 2)), rng.uniform(30, 90, (n_boxes, 2))])
    rows = [
        f"a,w{w},{x:.1f},{y:.1f},{width:.1f},{height:.1f},car\n"
        for w in range(3)
        for x, y, width, height in (at + rng.normal(0, 1, at.shape)).tolist()
    ]
    return "task,worker,x,y,width,height,label\n" + "".join(rows)


def _texts(n_words: int, share: float = 0.03) -> str:
    rng = np.random.default_rng(0)
    truth, rows = rng.integers(3000, size=n_words), []
    for w in range(3):
        own = np.where(rng.random(n_words) < share, rng.integers(3000, size=n_words), truth)
        rows.append(f"a,w{w}," + " ".join(f"v{k}" for k in own[rng.random(n_words) > share / 2]))
    return "task,worker,text\n" + "\n".join(rows) + "\n"


def _spans(n_types: int, n_tokens: int) -> str:
    tags = [f"B-T{k % n_types}" for k in range(n_tokens)]
    rows = "".join(f"a,w{w},{' '.join(tags)}\n" for w in range(3))
    return "task,worker,tags\n" + rows


def _fit(name: str, kind: str, content: str, *more: str, **given: object) -> Attack:
    return Attack(
        name=f"budget: {name}",
        arguments=("aggregate", "a.csv", "--type", kind, *more, *OUTPUT),
        files={"a.csv": content},
        **given,  # type: ignore[arg-type]
    )


TAGS = ("2001 tags (of 1000 types)", "merge rare ones, or leave them out")
ATTACKS = (
    _fit("3 rankings of 1000 items", "rankings", _rankings(1000)),
    _fit("3 rankings of 50 items", "rankings", _rankings(50)),
    _fit("3 x 2000 boxes in one image", "boxes", _boxes(2000, 1e4)),
    _fit("3 x 2000 boxes, box-em", "boxes", _boxes(2000, 1e4), "-m", "box-em"),
    _fit("3 x 300 boxes in a heap", "boxes", _boxes(300, 200.0)),
    _fit("3 texts of 20000 words", "texts", _texts(20_000)),
    _fit("3 texts of 2000 other words", "texts", _texts(2000, 0.9), "-m", "text-medoid"),
    _fit("texts that are too long", "texts", _texts(40_000),
         refused=("14 billion pairs of words, of at most 10", "shorter parts")),
    *(
        _fit(f"1000 types of spans, {method}", "sequences", _spans(1000, 2000), "-m", method,
             refused=TAGS)
        for method in ("bsc", "hmm-crowd", "token-wise")
    ),
    _fit("30 types of spans", "sequences", _spans(30, 100)),
)  # fmt: skip
