"""Commands and calls that address the findings on other kinds than classes."""

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
    "different-scales": "audit {file} --part scale -o audit",
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
    "different-scales": 'wc.audit.audit_crowd(labels, parts=["scale"]).findings',
    "": 'wc.aggregate(labels, "gaussian-em")',
}
NUMBER_WORKER_FINDINGS = (
    "spammers", "reversed-scale", "constant-answers", "noisy-workers", "biased-workers",
    "shared-errors", "different-scales",
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

SEQUENCE_COMMANDS = {
    "marks-nothing": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "marks-everything": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "random-spans": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "no-signal": "inspect {first}",
    "clones": "audit {file} --part clones -o audit",
    "agreement": "audit {file} --part agreement -o audit",
    "agreement-at-chance": "audit {file} --part agreement --part spammers -o audit",
    "one-label-per-task": "aggregate {file} -m bsc -o spans.csv",
    **dict.fromkeys(
        ("long-spans", "short-spans", "split-spans", "type-confusion", "missed-spans",
         "phantom-spans"), "audit {file} --part habits -o audit",
    ),
}  # fmt: skip
SEQUENCE_CALLS = {
    "marks-nothing": 'wc.audit.clean(labels, ["spammers"]).labels',
    "marks-everything": 'wc.audit.clean(labels, ["spammers"]).labels',
    "random-spans": 'wc.audit.clean(labels, ["spammers"]).labels',
    "clones": 'wc.audit.audit_crowd(labels, parts=["clones"]).tables()',
    "": 'wc.audit.audit_crowd(labels, parts=["habits"]).tables()',
}
SEQUENCE_WORKER_FINDINGS = (
    "marks-nothing", "marks-everything", "random-spans", "clones", "long-spans", "short-spans",
    "split-spans", "type-confusion", "missed-spans", "phantom-spans",
)  # fmt: skip

SET_COMMANDS = {
    "spammers": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "adversaries": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "constant-answers": "audit {file} --part spammers -o audit",
    "kept-spammers": "aggregate {file} -m shared-two-coin -o sets.csv",
    "no-signal": "inspect {first}",
    "one-box-workers": "audit {file} --part habits -o audit",
    "agreement-at-chance": "audit {file} --part agreement -o audit",
    "unclear-classes": "audit {file} --part agreement -o audit",
    "one-label-per-task": "aggregate {file} -m shared-two-coin -o sets.csv",
}
SET_CALLS = {
    "spammers": 'wc.audit.clean(labels, ["spammers"]).labels',
    "adversaries": 'wc.audit.clean(labels, ["spammers"]).labels',
    "one-box-workers": "wc.audit.find_one_box_workers(labels).tables()",
    "unclear-classes": "wc.audit.measure_set_agreement(labels).tables()",
    "": 'wc.aggregate(labels, "shared-two-coin")',
}
SET_WORKER_FINDINGS = ("spammers", "adversaries", "constant-answers", "one-box-workers")

BOX_COMMANDS = {
    "draws-nothing": "audit {file} --part drawers -o audit",
    "misses-objects": "aggregate {file} -m box-em -o boxes.csv --workers-to workers.csv",
    "draws-phantoms": "aggregate {file} -m box-em -o boxes.csv --assignments-to assignments.csv",
    "tight-boxes": "aggregate {file} -p corners=gaussian-em -o boxes.csv",
    "loose-boxes": "aggregate {file} -p corners=gaussian-em -o boxes.csv",
    "shifted-boxes": "aggregate {file} -p corners=gaussian-em -o boxes.csv",
    "copied-boxes": "audit {file} --part copies -o audit",
    "equal-boxes": "audit {file} --part copies -o audit",
    "no-empty-annotations": "inspect {first}",
    "one-worker-per-image": "inspect {first}",
}
BOX_CALLS = {
    "misses-objects": 'wc.aggregate(labels, "box-em")',
    "draws-phantoms": 'wc.aggregate(labels, "box-em")',
    "tight-boxes": 'wc.aggregate(labels, "box-consensus", corners="gaussian-em")',
    "loose-boxes": 'wc.aggregate(labels, "box-consensus", corners="gaussian-em")',
    "shifted-boxes": 'wc.aggregate(labels, "box-consensus", corners="gaussian-em")',
    "copied-boxes": 'wc.audit.audit_crowd(labels, parts=["copies"]).tables()',
    "": 'wc.aggregate(labels, "box-consensus")',
}
BOX_WORKER_FINDINGS = (
    "draws-nothing", "misses-objects", "draws-phantoms", "tight-boxes", "loose-boxes",
    "shifted-boxes", "copied-boxes",
)  # fmt: skip
