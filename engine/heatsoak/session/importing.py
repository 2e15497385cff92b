"""Logs of other tools as session files: what they tell, provenance `imported`, nothing added.

Where one recording ends and the next begins is told in `importers/_placing.py`.
"""

from __future__ import annotations

import importlib
import pkgutil
import secrets
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby, islice
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol, cast

import heatsoak
from heatsoak.clock import now_utc
from heatsoak.errors import UsageError
from heatsoak.profiles.cards import card_for_name
from heatsoak.recipe import Recipe
from heatsoak.session import importers
from heatsoak.session.access import check_is_file
from heatsoak.session.importers import _lines
from heatsoak.session.importers._cells import DAY_S
from heatsoak.session.importers._placing import GAP_S, placed
from heatsoak.session.rows import Batch, EventRow, JobRow, StepsRow
from heatsoak.session.store import SessionWriter
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import READING_NAMES, READINGS, DeviceSample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from heatsoak.session.importers._table import Row
    from heatsoak.session.rows import SessionState

HEAD_LINES = 40
"""So many lines are looked at to tell the format."""
BATCH_ROWS = 5000
MOST_RECORDINGS, MOST_DEVICES = 1000, 256
"""More are no log of a machine."""
FACTS = ("name", "driver_version", "memory_total_bytes", "power_limit_default_w")
"""What a row may say of its device rather than of the instant."""


class Importer(Protocol):
    """What a module of `importers` offers."""

    LABEL: str

    def claims(self, head: Sequence[str]) -> bool:
        """Whether the first lines of a log are of its form."""
        ...

    def rows(self, lines: Iterable[str], columns: Sequence[str] | None) -> Iterator[Row | str]:
        """The rows, each a `Row` or why it was skipped."""
        ...


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says of a log."""

    format: str | None = None
    """Name of an importer; None: by the content."""
    columns: tuple[str, ...] | None = None
    """Names of the columns, as the tool calls them."""
    period_s: float | None = None
    """Seconds between two readings of a device, for a log without times."""


@dataclass(slots=True)
class Recording:
    """One recording of a log."""

    start_s: float
    devices: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By id what is known of each."""
    rows: int = 0
    end_s: float = 0.0
    steps_s: list[float] = field(default_factory=list)
    """The first steps between instants, to tell the period."""
    readings: set[str] = field(default_factory=set)
    """What any row reported."""


@dataclass(slots=True)
class Understood:
    """What a log was found to be."""

    format: str
    label: str
    recordings: list[Recording]
    """In the order of the log."""
    unit: str
    has_times: bool = True
    skipped: Counter[str] = field(default_factory=Counter)
    """Why rows were left out, and how many."""
    odd: Counter[str] = field(default_factory=Counter)
    """Readings whose cell was left out, for its unit or because it cannot be."""

    def words(self) -> list[str]:
        """What was understood, a sentence a line."""
        said = [f"{self.label} ({self.format}), {_count(len(self.recordings), 'recording')}"]
        for number, one in enumerate(self.recordings, 1):
            period = f"every {median(one.steps_s):.3g} s" if one.steps_s else "at one instant"
            names = [READING_NAMES.get(r, r) for r in (*READINGS, "rate") if r in one.readings]
            said.append(
                f"recording {number}: {_count(one.rows, 'row')}, "
                f"{', '.join(f'device {name}' for name in one.devices)}, {period} over "
                f"{one.end_s - one.start_s:.0f} s: {', '.join(names) or 'no reading'}"
            )
        said += [f"left out: {count} {why}" for why, count in self.skipped.most_common()]
        said += [
            f"left out: {count} cells of {READING_NAMES.get(name, name)} that cannot be"
            for name, count in self.odd.most_common()
        ]
        return said


def importer_modules() -> dict[str, Importer]:
    """All importers by name."""
    names = sorted(m.name for m in pkgutil.iter_modules(importers.__path__))
    found = {name: importlib.import_module(f"{importers.__name__}.{name}") for name in names}
    return {
        name.replace("_", "-"): cast("Importer", module)
        for name, module in found.items()
        if hasattr(module, "claims")
    }


def is_foreign(path: Path, options: Options) -> bool:
    """Whether a file is to be read as another tool's log: one claims it, or the user says so."""
    if options != Options():
        return True
    try:
        recognise(path, options)
    except UsageError:
        return False
    return True


def recognise(path: Path, options: Options) -> str:
    """The name of the importer that a log is for.

    Raises:
        UsageError: none claims it, or there is none of the name.
    """
    check_is_file(path)
    known = importer_modules()
    if options.format is not None:
        if options.format not in known:
            raise UsageError(f"unknown format {options.format!r}; there is {', '.join(known)}")
        return options.format
    head = list(islice(_lines.lines(path), HEAD_LINES))
    for name, module in known.items():
        if module.claims(head):
            return name
    if not head:
        raise UsageError(f"{path} holds no whole line")
    raise UsageError(f"{path} is no log that is known; --format takes {', '.join(known)}")


def understand(
    path: Path, options: Options, progress: Callable[[float], None] | None = None
) -> Understood:
    """Read a log once, keeping no row.

    Args:
        path: the log.
        options: what the user says of it.
        progress: told which share has been read.

    Raises:
        UsageError: it cannot be read, or is not understood.
    """
    if options.period_s is not None and not 0 < options.period_s <= GAP_S:
        raise UsageError(f"--period is in seconds, above 0 and at most {GAP_S:.0f}")
    name = recognise(path, options)
    module = importer_modules()[name]
    found = Understood(name, module.LABEL, [], getattr(module, "UNIT", "units"))
    count = 0
    for at, t_s, row in placed(path, module, options, found, progress):
        while len(found.recordings) <= at:
            found.recordings.append(Recording(t_s))
        if len(found.recordings) > MOST_RECORDINGS:
            raise UsageError(f"{path} falls into more than {MOST_RECORDINGS} recordings")
        one = found.recordings[at]
        if t_s > one.end_s and one.rows > 0 and len(one.steps_s) < 999:
            one.steps_s.append(t_s - one.end_s)
        one.end_s, one.rows, count = t_s, one.rows + 1, count + 1
        facts = one.devices.setdefault(row.device, {})
        if len(one.devices) > MOST_DEVICES:
            raise UsageError(f"{path} names more than {MOST_DEVICES} devices")
        for key, value in row.values.items():
            if value is None:
                continue
            if key in FACTS or (key == "power_limit_w" and key not in facts):
                facts[key] = value
            if key not in FACTS:
                one.readings.add(key)
    readings: set[str] = set().union(*(one.readings for one in found.recordings))
    if not count or not readings:
        hint = "".join(f"; {number} {why}" for why, number in found.skipped.most_common(1))
        if options.columns is None and found.skipped:
            hint += "; where a header is missing or wrong, say --columns NAME,..."
        raise UsageError(f"{path} holds no reading that {found.label} is known for{hint}")
    return found


def import_log(
    path: Path,
    options: Options,
    out: Path,
    *,
    force: bool = False,
    judged: Callable[[Path, SessionWriter], SessionState] | None = None,
    progress: Callable[[float], None] | None = None,
) -> tuple[Understood, list[Path]]:
    """Write a log as sessions, one a recording; the second one is `NAME-2`, and so on.

    Args:
        path: the log.
        options: what the user says of it.
        out: the first session file.
        force: replace session files that are there.
        judged: judges a session whose readings are all in it, adds what it found and says how the
            session ended; None: nothing is judged.
        progress: told which share has been done.

    Returns:
        What was understood, and the files.

    Raises:
        UsageError: the log is not understood, or a file cannot be written.
    """
    half = None if progress is None else lambda share: progress(share / 2)
    rest = None if progress is None else lambda share: progress(0.5 + share / 2)
    found = understand(path, options, half)
    paths = [
        out.with_name(f"{out.stem}{f'-{number}' * (number > 1)}{out.suffix}")
        for number in range(1, len(found.recordings) + 1)
    ]
    for one in paths:
        if one.exists() and not force:
            raise UsageError(f"{one} exists; give another --out, or --force to replace it")
    module = importer_modules()[found.format]
    again = Understood(found.format, found.label, [], found.unit)
    for at, rows in groupby(placed(path, module, options, again, rest), key=lambda row: row[0]):
        writer = _create(paths[at], path, found, found.recordings[at], force=force)
        state: SessionState = "interrupted"
        try:
            sink = _Sink(writer, found.recordings[at])
            for _, t_s, row in rows:
                sink.add(t_s, row)
            sink.flush()
            if judged is not None:
                state = judged(paths[at], writer)
        finally:
            writer.close(state)
    return found, paths


class _Sink:
    """Rows on their way into one session."""

    def __init__(self, writer: SessionWriter, recording: Recording) -> None:
        self._writer, self._start_s = writer, recording.start_s
        self._samples: list[DeviceSample] = []
        self._steps: list[StepsRow] = []
        self._done: dict[str, tuple[float, float]] = {}
        """By device: (when, units done)"""

    def add(self, t_s: float, row: Row) -> None:
        t_s -= self._start_s
        name = row.device
        values = {key: value for key, value in row.values.items() if key in READINGS}
        self._samples.append(DeviceSample(t_s, name, **values))
        rate = row.values.get("rate")
        if rate is not None:
            last_s, done = self._done.get(name, (t_s, 0.0))
            done += rate * (t_s - last_s)
            self._done[name] = (t_s, done)
            self._steps.append(StepsRow(t_s, f"job-{name}", done, 0, None))
        if len(self._samples) >= BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        self._writer.write(Batch({}, samples=tuple(self._samples), steps=tuple(self._steps)))
        self._samples, self._steps = [], []


def _card(facts: Mapping[str, Any]) -> str | None:
    """The card profile, where the log has the whole name."""
    card = card_for_name(facts.get("name", ""), facts.get("memory_total_bytes"))
    return None if card is None else card.id


def _create(
    out: Path, log: Path, found: Understood, recording: Recording, *, force: bool
) -> SessionWriter:
    devices = [
        DeviceInfo(
            device_id=name, uuid=name, name=facts.get("name") or "unknown card", kind="nvidia",
            provenance="imported",
            card=_card(facts), power_limit_w=facts.get("power_limit_w"),
            power_limit_default_w=facts.get("power_limit_default_w"),
            memory_total_bytes=facts.get("memory_total_bytes"),
            driver_version=facts.get("driver_version"),
            missing={
                reading: "not in the log" for reading in READINGS
                if reading not in recording.readings
            },
        )
        for name, facts in recording.devices.items()
    ]  # fmt: skip
    counts = "rate" in recording.readings
    recipe = Recipe(found.format, "unknown", 0, 0, 0, "unknown", "none", False, False, "none")
    jobs = [
        JobRow(f"job-{d.device_id}", found.format, 1, recipe, "script", found.unit, (d.device_id,))
        for d in devices
        if counts
    ]
    created = now_utc()
    if found.has_times and recording.start_s > 10 * DAY_S:
        created = datetime.fromtimestamp(recording.start_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    meta = {
        "id": secrets.token_hex(4), "created_utc": created, "host": "unknown",
        "protocol": "standard", "heatsoak_version": heatsoak.__version__, "speed": "1",
        "seed": "0", "provenance": "imported", "state": "recording", "name": log.name[:200],
    }  # fmt: skip
    source = {"file": log.name, "format": found.format, "understood": found.words()}
    writer = SessionWriter.create(
        out, meta=meta, devices=devices, jobs=jobs, environment={"import": source}, force=force
    )
    told = [EventRow(0.0, "start", f"imported from {log.name}: {found.label}")]
    told += [EventRow(0.0, "warning", words) for words in found.words() if words[:4] == "left"]
    writer.write(Batch({}, events=tuple(told)))
    return writer


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
