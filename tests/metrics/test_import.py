"""Importing the metrics must stay cheap: the command line starts with it."""

from __future__ import annotations

import subprocess
import sys

from wisecrowd import metrics


def test_import_loads_no_scipy():
    code = (
        "import sys, wisecrowd.metrics; heavy = {'scipy', 'sklearn', 'pandas'}; "
        "sys.exit(any(name.split('.')[0] in heavy for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_exists_and_is_documented():
    for name in metrics.__all__:
        assert "Examples" in (getattr(metrics, name).__doc__ or "")
