"""Kernels: the inner loops on plain arrays, as a NumPy specification and as compiled code.

Each family of kernels has a module that defines what each kernel computes, the reference; beside it
a module whose name ends in ``_fast`` has the same names, compiled by numba, and must agree with it.

One pass over the annotations takes the E-step and the counts of the M-step together. Confusion
matrices touch one contiguous row of a (worker · label, class) table per annotation. Votes and coins
touch only the labels that a task received. Belief propagation keeps one message per annotation.
Loops over workers or pairs avoid BLAS, whose threads cost more than they save and spin after the
call.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

COMPILE_FROM = 100_000  # annotations; below this, compiling costs more time than it saves
MODULES = {
    "alignment": "kinds.texts.kernels",
    "belief_propagation": "kinds.classes.kernels.belief_propagation",
    "box_objects": "kinds.boxes.kernels",
    "comparisons": "kinds.pairs.kernels",
    "confusion": "kinds.classes.kernels.confusion",
    "gibbs": "kinds.classes.kernels.gibbs",
    "glad": "kinds.classes.kernels.glad",
    "hierarchical": "kinds.classes.kernels.hierarchical",
    "id_hash": "kernels.id_hash",
    "incremental": "kinds.classes.kernels.incremental",
    "noise_levels": "kinds.numbers.kernels",
    "online_ratings": "kinds.pairs.kernels",
    "pairs": "kinds.classes.kernels.pairs",
    "same_clusters": "kinds.same.kernels",
    "sparse_posterior": "kinds.classes.kernels.sparse_posterior",
    "tag_chains": "kinds.sequences.kernels",
    "worker_noise": "kinds.numbers.kernels",
}


def kernels_for(family: str, work: int) -> ModuleType:
    """Return a family's kernels for a problem of this size; small ones are not compiled.

    Where numba is not installed, nothing is: the reference computes the same, but slower.

    Parameters
    ----------
    family : str
        A family in ``MODULES``.
    work : int
        Size of the whole problem: the number of annotations that take the same time.
    """
    compiled = work >= COMPILE_FROM and find_spec("numba") is not None
    return import_module(f"wisecrowd.{MODULES[family]}{'_fast' if compiled else ''}")
