"""Folders of Arrow files, which ``Dataset.save_to_disk`` of Hugging Face's library writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.limits import require_rows, require_size

_STATE = "state.json"  # names the files of the data; caches of later steps may lie beside them
_INFO = "dataset_info.json"
_SPLITS = "dataset_dict.json"
_LONGEST = 16 << 20  # bytes of either of them


def is_arrow_folder(path: Path) -> bool:
    """Return whether a path is a folder with a data set, or with several splits of one."""
    return path.is_dir() and any((path / name).is_file() for name in (_STATE, _INFO, _SPLITS))


def arrow_batches(folder: Path, name: str) -> Iterator[Any]:
    """Yield the record batches of a folder, validated and within the limits.

    Parameters
    ----------
    folder : Path
    name : str
        What messages call it.

    Raises
    ------
    DataError
        If there are no data, or if they are damaged or too large.
    """
    import pyarrow as pa

    rows = decoded = stored = 0
    for file in _data_files(folder, name):
        stored += file.stat().st_size
        try:
            with file.open("rb") as stream, pa.ipc.open_stream(stream) as reader:
                for batch in reader:
                    batch.validate(full=True)
                    rows, decoded = rows + batch.num_rows, decoded + batch.nbytes
                    require_rows(name, rows)
                    require_size(name, decoded, stored)
                    yield batch
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise DataError(
                f"{file} is damaged or cut off ({str(error).splitlines()[0]}); write it again."
            ) from error


def _data_files(folder: Path, name: str) -> list[Path]:
    splits = _read_object(folder / _SPLITS).get("splits")
    if isinstance(splits, list) and splits:
        named = ", ".join(map(str, splits[:10]))
        raise DataError(
            f"{name} holds several splits ({named}); name the folder of one, such as "
            f"{folder / str(splits[0])}."
        )
    listed: Any = _read_object(folder / _STATE).get("_data_files")
    names = [one.get("filename") for one in listed] if _are_objects(listed) else []
    files = [folder / one for one in names if isinstance(one, str) and Path(one).name == one]
    if not names:
        files = sorted(folder.glob("*.arrow"))
    files = [file for file in files if file.is_file() and not file.is_symlink()]
    if len(files) < len(names):
        raise DataError(
            f"{name} lacks {len(names) - len(files)} of its .arrow files; copy it again."
        )
    if not files:
        raise DataError(f"{name} holds no .arrow file; name the folder of one split.")
    return files


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _read_object(file: Path) -> dict[str, Any]:
    """Return a JSON object; an empty one if there is none."""
    try:
        with file.open("rb") as stream:
            value = json.loads(stream.read(_LONGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
