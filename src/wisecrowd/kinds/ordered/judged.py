"""Ordered classes as judges are compared on: by the distance between grades."""

from __future__ import annotations

from wisecrowd.kinds.classes.judged import judged_answers as judged_answers
from wisecrowd.kinds.classes.judged import known_answers as known_answers
