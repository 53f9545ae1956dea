"""``python -m wisecrowd`` is ``wisecrowd``."""

import sys

from wisecrowd.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
