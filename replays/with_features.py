"""Experiments of the Max-MIG, deepBP and BayesDGC papers with features, at the size of two cores.

``--full`` takes more tasks and settings; what stands in for what is said in replays/README.md.
"""

from __future__ import annotations

import argparse

import torch

from replays import bayes_dgc, deep_bp, max_mig
from replays.material import Job

EXPERIMENTS = {
    "max-mig-rates": (max_mig.rates, 2),
    "max-mig-cases": (max_mig.cases, 2),
    "hospital": (max_mig.hospital, 5),
    "copies-of-a-coin": (max_mig.copies_of_a_coin, 10),
    "labelme-mig": (max_mig.labelme, 10),
    "deepbp-synthetic": (deep_bp.synthetic, 20),
    "deepbp-prior": (deep_bp.prior_sweep, 5),
    "deepbp-clip": (deep_bp.clip_sweep, 3),
    "deepbp-spammers": (deep_bp.spammers, 20),
    "deepbp-budget": (deep_bp.budget, 10),
    "bayesdgc-fraction": (bayes_dgc.fraction, 5),
    "bayesdgc-imbalanced": (bayes_dgc.imbalanced, 3),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiment", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--seeds", type=int, help="how many seeds to average")
    parser.add_argument("--full", action="store_true", help="more tasks and settings: hours")
    parser.add_argument("--resume", action="store_true", help="keep what was measured before")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name, (run, n_seeds) in EXPERIMENTS.items():
        if options.experiment in (name, "all"):
            seeds = range(options.seeds or n_seeds)
            run(Job(name, seeds, options.full, options.resume).begin())


if __name__ == "__main__":
    main()
