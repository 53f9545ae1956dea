"""What an attack is: files in a folder, one command of wisecrowd, and what must come of it."""

from __future__ import annotations

import re
import resource
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.faults import FaultOutcome, run_with
from tests.support.inputs.judging import CaseResult, Outcome

SECONDS = 30.0  # of processor time
MEGABYTES = 2000
_SENTENCE = re.compile(r"wisecrowd: [^\n]+[.!?]\n?")


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One command on files that nobody expected.

    Attributes
    ----------
    name : str
    arguments : tuple of str
        Of ``wisecrowd``, which runs in a folder of its own.
    files : mapping of names to content
        What lies in that folder.
    make : callable, optional
        Puts more into the folder.
    refused : tuple of str
        Words of the one sentence that must refuse it; none if it must be answered.
    says : tuple of str
        Words that an answer must come with on standard error.
    wrong : callable, optional
        Takes the folder and what was printed to standard output, and returns what is wrong with
        the answer, "" if nothing.
    claims : callable, optional
        Likewise; returns what is claimed without evidence.
    seconds, megabytes : float
        Processor time and memory that it may take.
    """

    name: str
    arguments: tuple[str, ...]
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    make: Callable[[Path], None] | None = None
    refused: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    wrong: Callable[[Path, str], str] | None = None
    claims: Callable[[Path, str], str] | None = None
    seconds: float = SECONDS
    megabytes: float = MEGABYTES


def run_attack(attack: Attack) -> CaseResult:
    """Run the command in a new folder and judge what came of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in attack.files.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        if attack.make is not None:
            attack.make(folder)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        end = run_with(None, list(attack.arguments), folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if seconds > attack.seconds:
            return CaseResult(Outcome.OVER_BUDGET, f"{seconds:.0f} s")
        # The largest child so far: it only tells something when this one made it larger.
        if before.ru_maxrss < after.ru_maxrss and after.ru_maxrss / 1024 > attack.megabytes:
            return CaseResult(Outcome.OVER_BUDGET, f"{after.ru_maxrss / 1024:.0f} MB")
        return _judge(attack, end, folder)


def _judge(attack: Attack, end: FaultOutcome, folder: Path) -> CaseResult:
    if end.code < 0 or "Traceback" in end.err:
        return CaseResult(Outcome.OBSCURE, f"exit {end.code}: {end.err.strip()[-300:]}")
    if end.code != 0:
        return _judge_refusal(attack, end.err)
    out = end.out.decode(errors="replace")
    if attack.refused:
        return CaseResult(Outcome.SILENTLY_ACCEPTED, f"{end.err[-300:]} {out[-300:]}")
    lacking = [word for word in attack.says if word not in end.err]
    if lacking:
        return CaseResult(Outcome.SILENTLY_ACCEPTED, f"{lacking} not in: {end.err[-400:]}")
    if attack.wrong is not None and (why := attack.wrong(folder, out)):
        return CaseResult(Outcome.SILENTLY_WRONG, why)
    if attack.claims is not None and (why := attack.claims(folder, out)):
        return CaseResult(Outcome.OVERCONFIDENT, why)
    return CaseResult(Outcome.WARNED if attack.says else Outcome.RIGHT)


def _judge_refusal(attack: Attack, message: str) -> CaseResult:
    said = message.strip().splitlines()[-1] if message.strip() else ""
    if not attack.refused:
        return CaseResult(Outcome.WRONGLY_REFUSED, said)
    lacking = [word for word in attack.refused if word not in said]
    if lacking or not _SENTENCE.fullmatch(said):
        return CaseResult(Outcome.OBSCURE, f"{lacking} not in: {message.strip()[-400:]}")
    return CaseResult(Outcome.REJECTED, said)
