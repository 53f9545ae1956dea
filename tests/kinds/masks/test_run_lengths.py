"""Run lengths: COCO's text by known examples, round trips, and set operations by dense images."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import binary_dilation

from wisecrowd.kinds.masks.run_lengths import (
    Runs,
    canonical,
    compressed,
    counts_of,
    counts_of_runs,
    decompressed,
    dense_mask,
    inside_runs,
    joined_runs,
    overlap,
    overlap_shares,
    widened,
)

# Published examples of COCO's encoding.
KNOWN = {
    "52203": [5, 2, 2, 2, 5],
    "61X13mN000`0": [6, 1, 40, 4, 5, 4, 5, 4, 21],
    "e75S10000000ST1": [245, 5, 35, 5, 35, 5, 35, 5, 35, 5, 1190],
}


@pytest.mark.parametrize("text", KNOWN)
def test_published_examples(text):
    assert decompressed(text).tolist() == KNOWN[text]
    assert compressed(np.array(KNOWN[text])) == text


def test_pixels_count_column_by_column():
    mask = np.array([[0, 1, 0], [1, 1, 0]])
    assert counts_of(mask).tolist() == [1, 3, 2]
    assert np.array_equal(dense_mask(np.array([1, 3, 2]), 2, 3), mask == 1)
    assert counts_of(np.ones((2, 2))).tolist() == [0, 4]


def test_round_trips_of_random_masks_and_numbers():
    rng = np.random.default_rng(0)
    for _ in range(50):
        size = rng.integers(1, 12, 2)
        mask, other = (rng.random(size) < rng.random() for _ in range(2))
        counts = counts_of(mask)
        assert np.array_equal(dense_mask(counts, *size), mask)
        assert np.array_equal(canonical(counts), counts)
        numbers = rng.integers(0, 10 ** rng.integers(1, 9), rng.integers(0, 9))
        assert np.array_equal(decompressed(compressed(numbers)), numbers)
        both = overlap(counts, counts_of(other))
        assert both == ((mask & other).sum(), mask.sum(), other.sum())


def test_runs_of_several_images():
    rng = np.random.default_rng(1)
    for _ in range(30):
        height, width = rng.integers(1, 9, (2, 4))
        images = [rng.random(size) < 0.3 for size in zip(height, width, strict=True)]
        counts = [counts_of(image) for image in images]
        pointer = np.cumsum([0, *map(len, counts)])
        runs = inside_runs(np.concatenate(counts), pointer)
        again, ends = counts_of_runs(joined_runs(runs, height * width)[0], height * width)
        assert np.array_equal(again, np.concatenate(counts))
        assert np.array_equal(ends, pointer)
        rim = rng.integers(0, 6, 4)
        wide, ends = counts_of_runs(widened(runs, height, width, rim), height * width)
        for i, image in enumerate(images):
            found = dense_mask(wide[ends[i] : ends[i + 1]], height[i], width[i])
            assert np.array_equal(found, binary_dilation(image, np.ones(2 * (2 * rim[i] + 1,))))


def test_runs_that_touch_are_joined_within_an_image():
    runs = Runs(np.array([0, 0, 1]), np.array([2, 0, 0]), np.array([4, 2, 3]))
    joined, _ = joined_runs(runs, np.array([4, 5]))
    assert [part.tolist() for part in joined] == [[0, 1], [0, 0], [4, 3]]


def test_runs_of_length_zero_are_merged():
    assert canonical(np.array([0, 0, 2, 3, 0, 1])).tolist() == [2, 4]
    assert canonical(np.array([0, 2, 0, 0, 3])).tolist() == [0, 2, 3]


def test_empty_masks_overlap_completely():
    assert overlap_shares(np.array([4]), np.array([4])) == (1.0, 1.0)
    assert overlap_shares(np.array([4]), np.array([0, 4])) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [("52é", "has a character"), ("5p", "has a character"), ("P", "ends within"),
     ("PPPPPPPP0", "too large")],
)  # fmt: skip
def test_broken_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        decompressed(text)
