"""Small tables that come with the package."""

from wisecrowd.datasets.bundled import anaesthetists

__all__ = ["anaesthetists"]
