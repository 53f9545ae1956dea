from __future__ import annotations

import json
import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.storage.models import index_digest, load_state, save_state
from wisecrowd.storage.state_codec import StateDecoder, StateEncoder


def ids(*values):
    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        array[position] = value
    return array


def round_trip(folder, state):
    save_state(folder / "model", "test", state)
    return load_state(folder / "model").state


@pytest.fixture
def model(tmp_path):
    state = {"probas_": np.arange(6.0).reshape(3, 2), "tasks_": ids("a", "b", "c"), "n_iter_": 3}
    save_state(tmp_path / "model", "one-coin", state)
    return tmp_path / "model"


def edit(model, change):
    """Change the index of a saved model with a function."""
    index = json.loads((model / "model.json").read_text())
    change(index)
    index = json.loads(json.dumps(index))
    index["digest"] = index_digest(index)  # as somebody who means harm would
    (model / "model.json").write_text(json.dumps(index))


class TestRoundTrip:
    @pytest.mark.parametrize(
        "value",
        [
            None,
            True,
            False,
            0,
            -3,
            2**80,
            0.1,
            -0.0,
            math.inf,
            -math.inf,
            "",
            "Zürich 🐈",
            "\udcff",
        ],
    )
    def test_scalars(self, tmp_path, value):
        loaded = round_trip(tmp_path, {"x": value})["x"]
        assert loaded == value
        assert type(loaded) is type(value)

    def test_not_a_number(self, tmp_path):
        assert math.isnan(round_trip(tmp_path, {"x": math.nan})["x"])

    def test_containers(self, tmp_path):
        state = {"x": {"a": [1, (2.5, "b", None)], 3: {"$type": "float"}, (1, "k"): []}}
        assert round_trip(tmp_path, state) == state

    def test_numpy_scalars_become_python_scalars(self, tmp_path):
        loaded = round_trip(tmp_path, {"a": np.float64(0.5), "b": np.int32(4), "c": np.bool_(1)})
        assert loaded == {"a": 0.5, "b": 4, "c": True}
        assert [type(value) for value in loaded.values()] == [float, int, bool]

    @pytest.mark.parametrize(
        "array",
        [
            np.array([[0.1, np.nan], [np.inf, -0.0]]),
            np.arange(6, dtype=np.int32).reshape(2, 3, order="F"),
            np.array([True, False]),
            np.array(["ä", "bcd"]),
            np.array([], dtype=np.float32),
            np.zeros((0, 3)),
            np.array(5.0),
            np.array([1], dtype=">i8"),
            np.array(["2024-01-01T00:00:00.5", "NaT"], dtype="datetime64[ns]"),
            np.arange(10)[::2],
        ],
        ids=lambda array: f"{array.dtype.str}{array.shape}",
    )
    def test_arrays_keep_every_bit(self, tmp_path, array):
        loaded = round_trip(tmp_path, {"x": array})["x"]
        assert loaded.dtype == array.dtype
        assert loaded.shape == array.shape
        assert loaded.tobytes() == array.tobytes()

    @pytest.mark.parametrize(
        "array",
        [
            ids("a", "Zürich", "猫", "🐈", "", " b ", "1", "\udcff"),
            ids(1, 2**70, -1),
            ids(True, False),
            ids(0.5, 1.0, math.inf),
            ids("1", 1.5, None, False, 7),
            ids((1, "a"), (2, "b")),
            ids(),
            np.array([["a", 1], [2, "b"]], dtype=object),
        ],
        ids=repr,
    )
    def test_ids_keep_value_and_type(self, tmp_path, array):
        loaded = round_trip(tmp_path, {"x": array})["x"]
        assert loaded.dtype == object
        assert loaded.shape == array.shape
        assert loaded.tolist() == array.tolist()
        assert [type(v) for v in loaded.ravel()] == [type(v) for v in array.ravel()]

    @pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
    def test_csr(self, tmp_path, container):
        matrix = container(np.array([[0.0, 0.5, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.25]]))
        loaded = round_trip(tmp_path, {"probas_": matrix})["probas_"]
        assert type(loaded) is container
        assert loaded.shape == (3, 3)
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(loaded, part), getattr(matrix, part))

    def test_names_that_meet_in_one_file_name_stay_apart(self, tmp_path):
        state = {
            "a b": np.array([1]),
            "a/b": np.array([2]),
            "A-b": np.array([3]),
            "../x": np.eye(1),
        }
        loaded = round_trip(tmp_path, state)
        assert {name: value.item() for name, value in loaded.items()} == {
            "a b": 1,
            "a/b": 2,
            "A-b": 3,
            "../x": 1.0,
        }
        # Some file systems do not tell capitals from small letters.
        assert len({entry.name.lower() for entry in (tmp_path / "model").iterdir()}) == 5

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda part: (
                st.lists(part) | st.lists(part).map(tuple) | st.dictionaries(st.text(), part)
            ),
        )
    )
    def test_whatever_is_encoded_is_decoded(self, value):
        text = json.dumps(StateEncoder().encode(value, "x"), allow_nan=False)
        assert StateDecoder(lambda name: np.empty(0)).decode(json.loads(text)) == value

    def test_kind(self, model):
        assert load_state(model).kind == "one-coin"

    def test_files_are_what_the_documentation_says(self, model):
        assert sorted(entry.name for entry in model.iterdir()) == ["model.json", "probas_.npy"]
        np.testing.assert_array_equal(
            np.load(model / "probas_.npy", allow_pickle=False), np.arange(6.0).reshape(3, 2)
        )

    def test_a_model_replaces_a_model(self, model):
        save_state(model, "other", {"x": np.eye(2)})
        assert load_state(model).kind == "other"
        assert sorted(entry.name for entry in model.iterdir()) == ["model.json", "x.npy"]


class TestSavingFails:
    @pytest.mark.parametrize(
        "value",
        [
            object(),
            {1, 2},
            b"bytes",
            ids("a", object()),
            np.array([(1, None)], dtype=[("a", int), ("b", object)]),
            sparse.coo_array(np.eye(2)),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_unknown_types_are_named(self, tmp_path, value):
        with pytest.raises(
            ParameterError, match=r"Cannot save params\.x: it holds a value of type"
        ):
            save_state(tmp_path / "model", "test", {"params": {"x": value}})
        assert list(tmp_path.iterdir()) == []

    def test_a_full_disk_leaves_the_old_model(self, model, small_file_limit):
        with pytest.raises(DataError, match=r"^Cannot write .*model: "):
            save_state(model, "big", {"x": np.zeros(100_000)})
        assert load_state(model).kind == "one-coin"
        assert [entry.name for entry in model.parent.iterdir()] == ["model"]

    def test_an_interrupt_leaves_the_old_model(self, model, monkeypatch):
        def interrupt(*_args, **_kwargs):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            save_state(model, "new", {"x": np.eye(2)})
        assert load_state(model).kind == "one-coin"
        assert [entry.name for entry in model.parent.iterdir()] == ["model"]

    def test_a_directory_with_other_files_is_left_alone(self, model):
        (model / "notes.txt").write_text("mine")
        with pytest.raises(DataError, match=r"holds notes\.txt, which would be lost"):
            save_state(model, "new", {})
        assert (model / "notes.txt").read_text() == "mine"


class TestLoadingFails:
    def refused(self, model, match):
        with pytest.raises(DataError, match=match) as caught:
            load_state(model)
        assert str(model) in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_no_such_directory(self, tmp_path):
        self.refused(tmp_path / "gone", "There is no model at")

    def test_a_file(self, tmp_path):
        (tmp_path / "file").touch()
        self.refused(tmp_path / "file", "There is no model at")

    def test_no_index(self, model):
        (model / "model.json").unlink()
        self.refused(model, r"model\.json cannot be read")

    @pytest.mark.parametrize("size", [0, 1, 50, -3])
    def test_index_cut_short(self, model, size):
        text = (model / "model.json").read_text()
        (model / "model.json").write_text(text[:size])
        self.refused(model, "cut short or not JSON")

    def test_index_not_text(self, model):
        (model / "model.json").write_bytes(b"\xff\xfe\x00")
        self.refused(model, "cut short or not JSON")

    def test_index_nested_without_end(self, model):
        (model / "model.json").write_text("[" * 200_000)
        self.refused(model, "cut short or not JSON")

    @pytest.mark.parametrize("text", ["[]", "{}", '{"format": "other"}', "3"])
    def test_index_of_something_else(self, model, text):
        (model / "model.json").write_text(text)
        self.refused(model, "not that of a wisecrowd model")

    @pytest.mark.parametrize("version", [2, 0, None, "1"])
    def test_unknown_format_version(self, model, version):
        edit(model, lambda index: index.update(format_version=version))
        self.refused(model, "format version")

    @pytest.mark.parametrize(("old", "new"), [('"n_iter_": 3', '"n_iter_": 4'), ('"one-', '"two-')])
    def test_index_changed(self, model, old, new):
        text = (model / "model.json").read_text()
        assert old in text
        (model / "model.json").write_text(text.replace(old, new))
        self.refused(model, r"model\.json was changed")

    def test_index_formatted_anew(self, model):
        text = json.dumps(json.loads((model / "model.json").read_text()), indent=4, sort_keys=True)
        (model / "model.json").write_text(text)
        assert load_state(model).state["n_iter_"] == 3

    def test_array_missing(self, model):
        (model / "probas_.npy").unlink()
        self.refused(model, r"probas_\.npy is missing")

    def test_array_cut_short(self, model):
        content = (model / "probas_.npy").read_bytes()
        (model / "probas_.npy").write_bytes(content[:-1])
        self.refused(model, r"probas_\.npy is cut short or was changed")

    def test_array_changed(self, model):
        np.save(model / "probas_.npy", np.ones((3, 2)))
        self.refused(model, r"probas_\.npy is cut short or was changed")

    def test_array_changed_together_with_its_digest(self, model):
        np.save(model / "probas_.npy", np.ones((2, 3)))
        rehash(model, "probas_")
        self.refused(model, r"array probas_ is <f8 \[2, 3\], not <f8 \[3, 2\]")

    def test_pickled_objects_are_never_loaded(self, model):
        np.save(model / "probas_.npy", np.array([print], dtype=object), allow_pickle=True)
        rehash(model, "probas_")
        self.refused(model, r"probas_\.npy is not a plain array")

    def test_an_archive_is_not_an_array(self, model):
        with (model / "probas_.npy").open("wb") as file:
            np.savez(file, x=np.eye(2))
        rehash(model, "probas_")
        self.refused(model, r"probas_\.npy is not a plain array")

    @pytest.mark.parametrize("name", ["../secret", "a/b", "/etc/x", "", "..", "a.b", "a\x00", 3])
    def test_names_cannot_leave_the_directory(self, model, name):
        np.save(model.parent / "secret.npy", np.zeros((3, 2)))

        def point_elsewhere(index):
            index["state"]["probas_"]["name"] = name
            index["sha256"][str(name)] = index["sha256"]["probas_"]
            index["sha256"][name] = index["sha256"]["probas_"]

        edit(model, point_elsewhere)
        self.refused(model, "is not allowed|does not describe a model")

    @pytest.mark.parametrize(
        "value",
        [
            {},
            {"$type": "pickle"},
            {"$type": "array"},
            {"$type": "float", "value": "x"},
            {"$type": "tuple", "items": 3},
            {"$type": "dict", "items": [[[], 1]]},
            {"$type": "dict", "items": [1]},
            {"$type": "ids", "items": ["a"], "shape": [2]},
            {"$type": "csr", "container": "system"},
        ],
        ids=str,
    )
    def test_state_that_the_encoder_never_writes(self, model, value):
        edit(model, lambda index: index["state"].update(x=value))
        self.refused(model, "Cannot load the model")

    @pytest.mark.parametrize("field", ["kind", "state", "sha256"])
    def test_a_field_missing_or_of_another_type(self, model, field):
        edit(model, lambda index: index.update({field: 3}))
        self.refused(model, "does not describe a model")
        edit(model, lambda index: index.pop(field))
        self.refused(model, f"no field '{field}'")

    def test_sparse_indices_out_of_range(self, tmp_path):
        save_state(tmp_path / "model", "test", {"x": sparse.csr_array(np.eye(3))})
        np.save(tmp_path / "model" / "x-indices.npy", np.array([0, 1, 999], dtype=np.int32))
        rehash(tmp_path / "model", "x-indices")
        self.refused(tmp_path / "model", "Cannot load the model")


def rehash(model, name):
    """Make a changed array pass the digest, as somebody who means harm would."""
    from wisecrowd.storage.manifest import file_sha256

    edit(model, lambda index: index["sha256"].update({name: file_sha256(model / f"{name}.npy")}))
