"""Importing the simulators must stay cheap: the command line starts with it."""

from __future__ import annotations

import subprocess
import sys

from wisecrowd import simulate


def test_import_loads_nothing_heavy():
    code = (
        "import sys, wisecrowd.simulate; "
        "heavy = {'scipy', 'sklearn', 'pandas', 'numba', 'pyarrow'}; "
        "sys.exit(any(name.split('.')[0] in heavy for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_is_documented():
    for name in simulate.__all__:
        assert getattr(simulate, name).__doc__
