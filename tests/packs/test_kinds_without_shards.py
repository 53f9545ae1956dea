"""Methods and kinds that cannot be fitted by shards say what to do instead, in one sentence."""

from __future__ import annotations

import pytest

import wisecrowd as wc
from wisecrowd.cli.main import run
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.kinds import KINDS
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.packs.fit import fit_pack, shardable_methods

PACKED = {
    "labels": ("label", ["a", "b"]), "ordered": ("label", ["1", "2"]),
    "numbers": ("value", ["1.5", "2.5"]), "pairs": ("left,right,outcome", ["x,y,left", "y,x,tie"]),
}  # fmt: skip
UNABLE = [
    (kind, name)
    for kind in PACKED
    for name in method_names(type=kind)
    if name not in shardable_methods(kind)
]


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    """A folder with a pack of each kind that can be packed."""
    folder = tmp_path_factory.mktemp("packs")
    for kind, (columns, values) in PACKED.items():
        rows = [f"t{n // 2},w{n % 2},{values[n % 3 % 2]}" for n in range(12)]
        file = folder / f"{kind}.csv"
        file.write_text(f"task,worker,{columns}\n" + "\n".join(rows) + "\n")
        options = {"classes": ["1", "2"]} if kind == "ordered" else {}
        wc.pack(file, folder / f"{kind}.pack", type=kind, shards=1, **options)
    return folder


@pytest.mark.parametrize(("kind", "name"), UNABLE)
def test_a_method_that_needs_all_labels_names_those_that_do_not(kind, name, packs, tmp_path):
    pack = packs / f"{kind}.pack"
    with pytest.raises(ParameterError, match=f"^{name} needs all labels in memory.* use one of"):
        fit_pack(get_method(name)(), pack, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in PACKED])
def test_other_kinds_have_no_pack_and_no_shards(kind, tmp_path, capsys):
    file = tmp_path / "answers.csv"
    file.write_text("task,worker,label\nt1,a,x\n")
    assert shardable_methods(kind) == []
    with pytest.raises(ParameterError, match=f"^type is '{kind}', and a pack holds .* themselves"):
        wc.pack(file, tmp_path / "crowd.pack", type=kind)
    code = run(["aggregate", str(file), "--type", kind, "--engine", "files", "-q"])
    said = capsys.readouterr().err
    assert code == 2
    assert "reads a pack of classes, numbers or pairs" in said
    assert "or leave --engine out." in said
