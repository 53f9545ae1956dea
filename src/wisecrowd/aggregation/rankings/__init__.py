"""Methods for rankings of items: one file each."""

from __future__ import annotations

# Class name → module. Adding a method is one file and one line here.
LOCATIONS: dict[str, str] = {
    "PlackettLuce": "plackett_luce",
}
