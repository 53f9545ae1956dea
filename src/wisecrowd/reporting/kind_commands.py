"""Commands and calls that address the findings on numbers, pairs and ordered classes."""

from __future__ import annotations

from wisecrowd.reporting.verdict import CALLS, COMMANDS, WORKER_FINDINGS

# Finding → its remedy, as arguments of `wisecrowd`; {file} is the file of annotations. The options
# for reading, such as --type numbers, are added.
NUMBER_COMMANDS = {
    "spammers": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "kept-spammers": "aggregate {file} -m gaussian-em -o values.csv",
    "reversed-scale": "audit {file} --part spammers -o audit",
    "constant-answers": "audit {file} --part spammers -o audit",
    "no-signal": "inspect {first}",
    "noisy-workers": "aggregate {file} -m student-em -o values.csv",
    "biased-workers": "aggregate {file} -m gaussian-em -o values.csv",
    "slightly-biased-workers": "aggregate {file} -m gaussian-em -o values.csv",
    "shared-errors": "audit {file} --part shared-errors -o audit",
    "log-scale": "aggregate {file} -m gaussian-em -p scale=log -o values.csv",
    "one-label-per-task": "aggregate {file} -m gaussian-em -o values.csv",
    "sparse-workers": "aggregate {file} -m median -o values.csv",
}
NUMBER_CALLS = {
    "spammers": 'wc.audit.clean(labels, ["spammers"]).labels',
    "kept-spammers": 'wc.aggregate(labels, "gaussian-em")',
    "noisy-workers": 'wc.aggregate(labels, "student-em")',
    "log-scale": 'wc.aggregate(labels, "gaussian-em", scale="log")',
    "sparse-workers": 'wc.aggregate(labels, "median")',
    "shared-errors": 'wc.audit.audit_crowd(labels, parts=["shared-errors"]).tables()',
    "": 'wc.aggregate(labels, "gaussian-em")',
}
NUMBER_WORKER_FINDINGS = (
    "spammers", "reversed-scale", "constant-answers", "noisy-workers", "biased-workers",
    "shared-errors",
)  # fmt: skip

PAIR_COMMANDS = {
    "adversaries": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "random-voters": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "kept-spammers": "aggregate {file} -m crowd-bt -o ranking.csv",
    "no-signal": "inspect {first}",
    "side-bias": "aggregate {file} -m bradley-terry -p side=true -o ranking.csv",
    "side-clickers": "aggregate {file} -m worker-ties -o ranking.csv",
    "one-sided-workers": "audit {file} --part sides -o audit",
    "tie-clickers": "aggregate {file} -m worker-ties -o ranking.csv",
    "many-ties": "aggregate {file} -m davidson -o ranking.csv",
    "contradictory-crowd": "audit {file} --part contradictions -o audit",
    "inconsistent-workers": "aggregate {file} -m crowd-bt -o ranking.csv",
    "cycles": "audit {file} --part cycles --json",
    "separate-items": "audit {file} --part connectivity -o audit",
    "items-without-votes": "audit {file} --part connectivity -o audit",
    "few-comparisons": "audit {file} --part connectivity -o audit",
}
PAIR_CALLS = {
    "adversaries": 'wc.audit.clean(labels, ["spammers"]).labels',
    "random-voters": 'wc.audit.clean(labels, ["spammers"]).labels',
    "kept-spammers": 'wc.aggregate(labels, "crowd-bt")',
    "side-bias": 'wc.aggregate(labels, "bradley-terry", side=True)',
    "side-clickers": 'wc.aggregate(labels, "worker-ties")',
    "tie-clickers": 'wc.aggregate(labels, "worker-ties")',
    "many-ties": 'wc.aggregate(labels, "davidson")',
    "separate-items": 'wc.audit.audit_crowd(labels, parts=["connectivity"]).tables()',
    "": 'wc.aggregate(labels, "crowd-bt")',
}
PAIR_WORKER_FINDINGS = (
    "adversaries", "random-voters", "side-clickers", "one-sided-workers", "tie-clickers",
    "inconsistent-workers",
)  # fmt: skip

TEXT_COMMANDS = {
    "empty-texts": "audit {file} --part errors -o audit",
    "constant-texts": "audit {file} --part errors -o audit",
    "unrelated-texts": "audit {file} --part errors -o audit",
    "copied-texts": "audit {file} --part copies -o audit",
    "no-common-wording": "aggregate {file} -m text-medoid -o texts.csv",
}
TEXT_CALLS = {
    "copied-texts": 'wc.audit.audit_crowd(labels, parts=["copies"]).tables()',
    "no-common-wording": 'wc.aggregate(labels, "text-medoid")',
    "": 'wc.audit.audit_crowd(labels, parts=["errors"]).tables()',
}
TEXT_WORKER_FINDINGS = ("empty-texts", "constant-texts", "unrelated-texts", "copied-texts")

ORDERED_COMMANDS = COMMANDS | {
    "biased-workers": "aggregate {file} -m ordinal-latent -o labels.csv",
    "slightly-biased-workers": "aggregate {file} -m ordinal-latent -o labels.csv",
    "extreme-labels": "aggregate {file} -m ordinal-latent -o labels.csv",
    "avoided-ends": "aggregate {file} -m ordinal-latent -o labels.csv",
}
ORDERED_CALLS = CALLS | {
    "biased-workers": 'wc.aggregate(labels, "ordinal-latent")',
    "slightly-biased-workers": 'wc.aggregate(labels, "ordinal-latent")',
    "extreme-labels": 'wc.aggregate(labels, "ordinal-latent")',
    "avoided-ends": 'wc.aggregate(labels, "ordinal-latent")',
    "": 'wc.aggregate(labels, "thresholds")',
}
ORDERED_WORKER_FINDINGS = (
    *WORKER_FINDINGS, "biased-workers", "extreme-labels", "avoided-ends",
)  # fmt: skip
