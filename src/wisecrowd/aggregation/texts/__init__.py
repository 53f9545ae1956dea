"""Methods for texts: one file each."""

from __future__ import annotations

# Class name → module. Adding a method is one file and one line here.
LOCATIONS: dict[str, str] = {
    "Rover": "rover",
    "TextMedoid": "text_medoid",
    "EmbeddingMedoid": "embedding_medoid",
}
