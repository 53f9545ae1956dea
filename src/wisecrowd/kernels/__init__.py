"""Kernels: the inner loops on plain arrays, as a NumPy specification and as compiled code.

Each family of kernels is a folder. Its ``reference`` module defines what each kernel computes; its
``fast`` module has the same names, compiled by numba, and must agree with it.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

COMPILE_FROM = 100_000  # annotations; below this, compiling costs more time than it saves
KERNELS = {
    ("alignment", "fast"): "wisecrowd.kernels.alignment.fast",
    ("alignment", "reference"): "wisecrowd.kernels.alignment.reference",
    ("belief_propagation", "fast"): "wisecrowd.kernels.belief_propagation.fast",
    ("belief_propagation", "reference"): "wisecrowd.kernels.belief_propagation.reference",
    ("box_objects", "fast"): "wisecrowd.kernels.box_objects.fast",
    ("box_objects", "reference"): "wisecrowd.kernels.box_objects.reference",
    ("comparisons", "fast"): "wisecrowd.kernels.comparisons.fast",
    ("comparisons", "reference"): "wisecrowd.kernels.comparisons.reference",
    ("confusion", "fast"): "wisecrowd.kernels.confusion.fast",
    ("confusion", "reference"): "wisecrowd.kernels.confusion.reference",
    ("gibbs", "fast"): "wisecrowd.kernels.gibbs.fast",
    ("gibbs", "reference"): "wisecrowd.kernels.gibbs.reference",
    ("glad", "fast"): "wisecrowd.kernels.glad.fast",
    ("glad", "reference"): "wisecrowd.kernels.glad.reference",
    ("hierarchical", "fast"): "wisecrowd.kernels.hierarchical.fast",
    ("hierarchical", "reference"): "wisecrowd.kernels.hierarchical.reference",
    ("id_hash", "fast"): "wisecrowd.kernels.id_hash.fast",
    ("id_hash", "reference"): "wisecrowd.kernels.id_hash.reference",
    ("incremental", "fast"): "wisecrowd.kernels.incremental.fast",
    ("incremental", "reference"): "wisecrowd.kernels.incremental.reference",
    ("noise_levels", "fast"): "wisecrowd.kernels.noise_levels.fast",
    ("noise_levels", "reference"): "wisecrowd.kernels.noise_levels.reference",
    ("online_ratings", "fast"): "wisecrowd.kernels.online_ratings.fast",
    ("online_ratings", "reference"): "wisecrowd.kernels.online_ratings.reference",
    ("pairs", "fast"): "wisecrowd.kernels.pairs.fast",
    ("pairs", "reference"): "wisecrowd.kernels.pairs.reference",
    ("same_clusters", "fast"): "wisecrowd.kernels.same_clusters.fast",
    ("same_clusters", "reference"): "wisecrowd.kernels.same_clusters.reference",
    ("sparse_posterior", "fast"): "wisecrowd.kernels.sparse_posterior.fast",
    ("sparse_posterior", "reference"): "wisecrowd.kernels.sparse_posterior.reference",
    ("tag_chains", "fast"): "wisecrowd.kernels.tag_chains.fast",
    ("tag_chains", "reference"): "wisecrowd.kernels.tag_chains.reference",
    ("worker_noise", "fast"): "wisecrowd.kernels.worker_noise.fast",
    ("worker_noise", "reference"): "wisecrowd.kernels.worker_noise.reference",
}


def kernels_for(family: str, work: int) -> ModuleType:
    """Return a family's kernels for a problem of this size; small ones are not compiled.

    Where numba is not installed, nothing is: the reference computes the same, but slower.

    Parameters
    ----------
    family : str
        A family in ``KERNELS``.
    work : int
        Size of the whole problem: the number of annotations that take the same time.
    """
    compiled = work >= COMPILE_FROM and find_spec("numba") is not None
    return import_module(KERNELS[family, "fast" if compiled else "reference"])
