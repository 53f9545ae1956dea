"""The method that CONTRIBUTING shows must work as it stands."""

import re
from pathlib import Path

from wisecrowd.testing import CHECKS, maker

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"


def test_the_example_is_a_method():
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    names: dict[str, object] = {}
    exec(block.group(1), names)
    make = maker(names["SharedConfusion"])
    wanted = {"row_order", "objective_monotone", "predict_repeats_fit", "gold", "integer_weights"}
    chosen = [check for check in CHECKS if check.__name__.removeprefix("check_") in wanted]
    assert len(chosen) == len(wanted)
    for check in chosen:
        check(make)
