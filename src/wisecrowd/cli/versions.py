"""``wisecrowd versions``: versions for a bug report."""

from __future__ import annotations

from wisecrowd.cli import options


def versions(as_json: options.PrintJson = False) -> None:
    """Print the versions that a bug report needs."""
    from wisecrowd.api import show_versions
    from wisecrowd.cli.outputs import print_json, print_text

    found = show_versions()
    if as_json:
        print_json(found)
    else:
        print_text(f"{found!r}\n")
