"""One thing that was looked at: what was found, what it spoils, how to mend it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Severity = Literal["ok", "info", "warning", "error"]
"""`error`: a device cannot be used. `warning`: it spoils a measurement. `info`: good to know, or
not known. `ok`: looked at, and fine."""

WORST_FIRST: tuple[Severity, ...] = ("error", "warning", "info", "ok")
NOT_KNOWN = "not known: "
"""How the text of a check that could not be made begins."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, of one device or of the machine."""

    id: str
    """Name of the check, such as `power-limit`; the same for all of its findings."""
    severity: Severity
    device_id: str | None
    """The device it is about; None: the machine."""
    title: str
    """A few words."""
    text: str
    """One sentence: what is."""
    spoils: str = ""
    """One sentence: what it spoils; empty where it spoils nothing."""
    remedy: str = ""
    """One sentence: how the user can mend it; heatsoak itself changes no setting."""

    @property
    def is_unknown(self) -> bool:
        """Whether the check could not be made; the text says why."""
        return self.text.startswith(NOT_KNOWN)


def ok(id: str, title: str, text: str = "", device_id: str | None = None) -> Finding:
    """Looked at, and fine."""
    return Finding(id, "ok", device_id, title, text or title)


def unknown(id: str, title: str, why: str, device_id: str | None = None) -> Finding:
    """A check that could not be made."""
    return Finding(id, "info", device_id, title, f"{NOT_KNOWN}{why}")


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The gravest first, what is known before what is not, a device's before the machine's."""
    return tuple(sorted(findings, key=_rank))


def _rank(finding: Finding) -> tuple[int, bool, bool]:
    is_general = finding.device_id is None
    return WORST_FIRST.index(finding.severity), finding.is_unknown, is_general


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """How many there are of each severity, and `unknown` apart from `info`."""
    found = Counter("unknown" if f.is_unknown else f.severity for f in findings)
    return {key: found[key] for key in ("error", "warning", "info", "unknown", "ok")}


def summary(findings: Iterable[Finding]) -> str:
    """`1 error, 2 warnings, 3 notes, 2 not known, 11 fine`; without what there is none of."""
    found = counts(findings)
    words = [
        _counted(found["error"], "error"),
        _counted(found["warning"], "warning"),
        _counted(found["info"], "note"),
        f"{found['unknown']} not known" if found["unknown"] else "",
        f"{found['ok']} fine" if found["ok"] else "",
    ]
    return ", ".join(filter(None, words)) or "nothing was looked at"


def problems(findings: Iterable[Finding]) -> Sequence[Finding]:
    """Errors and warnings only."""
    return [finding for finding in findings if finding.severity in ("error", "warning")]


@dataclass(frozen=True, slots=True)
class Told:
    """One finding, or the same one of several devices, as it is told to people."""

    severity: Severity
    device_ids: tuple[str, ...]
    title: str
    text: str
    spoils: str
    remedy: str

    @property
    def words(self) -> str:
        """`0, 1: ...`: whose it is, and what is."""
        whose = f"{', '.join(self.device_ids)}: " if self.device_ids else ""
        what = f"{self.title}, " if self.text.startswith(NOT_KNOWN) else ""
        return f"{whose}{what}{self.text}"


def told(findings: Iterable[Finding]) -> list[Told]:
    """What is to be told, in the order of the findings; what is fine is not.

    The same sentence of several devices is told once.
    """
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        if finding.severity != "ok":
            # A remedy may name the device; the first one's stands for all.
            key = (finding.severity, finding.title, finding.text, finding.spoils)
            groups.setdefault(key, []).append(finding)
    return [
        Told(
            group[0].severity,
            tuple(f.device_id for f in group if f.device_id is not None),
            group[0].title,
            group[0].text,
            group[0].spoils,
            group[0].remedy,
        )
        for group in groups.values()
    ]


def fine_words(findings: Iterable[Finding]) -> str:
    """What is fine, each check once with its devices: `power limit (0, 1), little other load`."""
    devices: dict[str, list[str]] = {}
    for finding in findings:
        if finding.severity == "ok":
            whose = devices.setdefault(finding.title, [])
            if finding.device_id is not None:
                whose.append(finding.device_id)
    return ", ".join(f"{title} ({', '.join(ids)})" if ids else title
                     for title, ids in devices.items())  # fmt: skip


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'s' if count > 1 else ''}" if count else ""
