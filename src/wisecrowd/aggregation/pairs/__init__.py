"""Methods for pairs of items: one file each."""

from __future__ import annotations

# Class name → module. Adding a method is one file and one line here.
LOCATIONS: dict[str, str] = {
    "BradleyTerry": "bradley_terry",
}
