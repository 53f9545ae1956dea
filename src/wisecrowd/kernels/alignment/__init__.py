"""Edit distances of texts and alignments of several texts, word by word."""
