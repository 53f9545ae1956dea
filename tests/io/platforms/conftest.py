"""The fixtures of all platforms: they carry the same judgements, and one that must be dropped."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture
def fixtures() -> Path:
    return FIXTURES


@pytest.fixture
def export(tmp_path):
    """Return the file or files of a platform's fixture by name."""

    def find(name: str) -> Path | list[Path]:
        if name == "doccano":
            return packed(tmp_path / "doccano.zip", FIXTURES / "doccano")
        if name == "ground_truth.zip":
            return packed(tmp_path / "job.zip", FIXTURES / "ground_truth")
        if name == "cvat":
            return sorted(FIXTURES.glob("cvat_*.xml"))
        if name == "cvat.zip":
            return [
                packed(tmp_path / f"{file.stem}.zip", file, "annotations.xml")
                for file in sorted(FIXTURES.glob("cvat_*.xml"))
            ]
        return FIXTURES / name

    return find


def packed(target: Path, source: Path, name: str | None = None) -> Path:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        if name is not None:
            archive.write(source, name)
        else:
            for file in sorted(source.rglob("*")):
                archive.write(file, file.relative_to(source).as_posix())
    return target


@pytest.fixture
def refused(tmp_path):
    """Write a file, read it, and return the one sentence with which it is refused."""
    from wisecrowd.core.exceptions import WisecrowdError
    from wisecrowd.io.tables import read

    def refuse(name: str, content: str | bytes, format: str = "auto", **options) -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        with pytest.raises(WisecrowdError) as caught:
            read(path, format, **options)
        message = str(caught.value)
        assert "\n" not in message.strip()
        assert message.endswith((".", "?")), message
        return message

    return refuse


@pytest.fixture
def written(tmp_path):
    """Write a file and return its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
