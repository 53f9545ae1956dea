"""State of the data, and everything needed to reproduce the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from wisecrowd.core.annotations import Annotations
from wisecrowd.reporting.display import shown
from wisecrowd.reporting.study import Study, is_large
from wisecrowd.storage.manifest import Manifest

FEW_LABELS = 10  # of a worker
MOST_CLASSES = 30
N_BARS = 12


def health(study: Study) -> dict[str, Any]:
    """Return missing data and omissions as plain data."""
    labels = study.labels
    identified: Any = study.audit.parts.get("identifiability")
    return {
        **state_of(labels, study.fit),
        "classes": _classes(study),
        "n_classes": labels.n_classes,
        "columns": columns_of(labels),
        "identified": [] if identified is None else [shown(s) for s in identified.sentences()],
        "skipped": {name: shown(reason) for name, reason in study.audit.skipped.items()},
        "shortcuts": _shortcuts(study),
    }


def state_of(labels: Annotations, fit: Any) -> dict[str, Any]:
    """Return notes, warnings, convergence, and how many labels tasks and workers have."""
    per_task, per_worker = labels.labels_per_task, labels.labels_per_worker
    return {
        "notes": [shown(note) for note in labels.notes],
        "warnings": [shown(text) for text in fit.warnings_],
        "converged": bool(fit.converged_),
        "n_iter": int(fit.n_iter_),
        "labels_per_task": spread_of(per_task),
        "labels_per_worker": spread_of(per_worker),
        "n_bare_tasks": int((per_task == 0).sum()),
        "n_single_tasks": int((per_task == 1).sum()),
        "n_light_workers": int(((per_worker > 0) & (per_worker < FEW_LABELS)).sum()),
        "bars": bars_of(per_task),
    }


def columns_of(labels: Annotations) -> list[str]:
    """Return the names of the columns besides task, worker and label."""
    return [*(["weight"] if labels.weight is not None else []), *labels.columns]


def spread_of(counts: Any) -> dict[str, float]:
    """Return least, median, mean and most of some counts."""
    if not len(counts):
        return {"least": 0, "median": 0.0, "mean": 0.0, "most": 0}
    return {
        "least": int(counts.min()),
        "median": float(np.median(counts)),
        "mean": float(counts.mean()),
        "most": int(counts.max()),
    }


def bars_of(per_task: Any) -> list[dict[str, Any]]:
    """Return the number of tasks by number of labels; the last bar includes all larger numbers."""
    counts = np.bincount(np.minimum(per_task, N_BARS))
    names = [*map(str, range(N_BARS)), f"{N_BARS} or more"]
    first = int(np.argmax(counts > 0)) if counts.any() else 0
    return [
        {"name": names[n], "count": count} for n, count in enumerate(counts.tolist()) if n >= first
    ]


def _classes(study: Study) -> list[dict[str, Any]]:
    """Return the share of each class among the labels and among the results, most common first."""
    given, chosen = (
        study.labels.class_totals,
        np.bincount(study.chosen, minlength=study.labels.n_classes),
    )
    order = np.argsort(-given, kind="stable")[:MOST_CLASSES]
    return [
        {
            "class": shown(study.labels.classes[k : k + 1].tolist()[0]),
            "labels": float(given[k] / max(given.sum(), 1e-300)),
            "tasks": float(chosen[k] / max(chosen.sum(), 1)),
        }
        for k in order.tolist()
    ]


def _shortcuts(study: Study) -> list[str]:
    """Return sentences about steps that were shortened for a large crowd."""
    options = study.effort
    if not is_large(study.labels):
        return []
    return [
        "The data set is large: intervals of the agreement of workers use "
        f"{options['agreement']['n_replicates']} bootstrap samples."
    ]


def reproduction(study: Study, manifest: Manifest | None, files: Any, seed: int) -> dict[str, Any]:
    """Return command, versions, hashes and parameters."""
    made = manifest or Manifest.describe(
        method=study.method, parameters=study.fit.get_params(deep=False), seed=seed
    )
    facts: Mapping[str, Any] = asdict(made)
    return {
        **facts,
        "command": [shown(word) for word in made.command],
        "inputs": {shown(name): digest for name, digest in made.inputs.items()},
        "files": [shown(file) for file in files],
    }
