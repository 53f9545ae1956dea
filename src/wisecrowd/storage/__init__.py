"""Atomic writes, manifests and model files: everything that writes goes through here."""

from wisecrowd.storage.atomic import atomic_directory, atomic_write, clear_write_errors, together
from wisecrowd.storage.manifest import Manifest, read_manifest, write_manifest
from wisecrowd.storage.models import SavedModel, load_state, save_state

__all__ = [
    "Manifest", "SavedModel", "atomic_directory", "atomic_write", "clear_write_errors",
    "load_state", "read_manifest", "save_state", "together", "write_manifest",
]  # fmt: skip
