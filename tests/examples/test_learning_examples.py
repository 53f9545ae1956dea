from __future__ import annotations

import importlib.util
import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
pytest.importorskip("torch")


def run(name, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(EXAMPLES))  # as for a script
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out


def shares(out):
    return [float(share) for share in re.findall(r"([\d.]+)% correct", out)]


def test_the_plain_loop_gets_from_57_percent_of_labels_to_most_digits(monkeypatch, capsys):
    out = run("pytorch_loop", monkeypatch, capsys)
    labels, digits = shares(out)
    assert labels < 60
    assert digits > 85
    assert float(re.search(r"off by ([\d.]+)", out)[1]) < 0.03


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("name", "package"),
    [("lightning_module", "pytorch_lightning"), ("hugging_face_trainer", "transformers")],
)
def test_the_others_do_the_same_or_say_what_is_missing(name, package, monkeypatch, capsys):
    if importlib.util.find_spec(package) is None:
        with pytest.raises(SystemExit) as stop:
            run(name, monkeypatch, capsys)
        assert stop.value.code == 0
        assert "nothing was run" in capsys.readouterr().out
    else:
        assert shares(run(name, monkeypatch, capsys))[1] > 85
