"""Crowds of language models are recognised by the kind of worker or by names."""

from __future__ import annotations

import pytest

from wisecrowd import CrowdLabels
from wisecrowd.core.model_workers import all_models, only_models


@pytest.mark.parametrize(
    "workers",
    [
        ["gpt-4o", "gpt-4o-mini"],
        ["GPT4", "Claude3", "gemini_flash", "llama-31", "mistral-v03"],
        ["openai/gpt-4", "meta.llama3-70b", "Qwen2.5-7B", "deepseek_r1"],
        ["llm_1", "llm_2"],
    ],
)
def test_names_of_models_are_words_of_ids(workers):
    assert all_models(workers)


@pytest.mark.parametrize(
    "workers",
    [
        [],
        ["gpt-4o"],  # one worker is no crowd
        ["gpt-4o", "ann"],
        ["Claudette", "Claudel"],  # a name inside of a word is none
        ["geminids", "philip"],
        [1, 2, 3],
        ["w1", "w2"],
    ],
)
def test_people_are_not_models(workers):
    assert not all_models(workers)


def test_the_kind_of_worker_outranks_names():
    def crowd(kinds):
        return CrowdLabels.from_arrays(
            [1, 1, 2, 2], ["gpt", "claude"] * 2, list("abab"), worker_kind=kinds * 2
        )

    assert only_models(crowd(["model", "model"]))
    assert not only_models(crowd(["human", "human"]))
    assert not only_models(crowd(["model", "human"]))
    assert only_models(CrowdLabels.from_arrays([1, 1], ["gpt", "claude"], ["a", "b"]))
