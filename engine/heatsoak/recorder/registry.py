"""Which runs are going on: one locked file a recorder, and what to do about those that crashed.

`$XDG_STATE_HOME/heatsoak/running/ID.json` is created locked (flock) and stays open as long as its
recorder lives; however that ends, the kernel lets the lock go. So a file whose lock is free is a
crash, whatever has become of its pid.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heatsoak.errors import DeviceUnavailableError, UsageError
from heatsoak.launch.processes import end_marked
from heatsoak.session.store import close_crashed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from heatsoak.telemetry.device import DeviceInfo

SOCKET_PATH_BYTES = 107
"""A Unix socket's path may not be longer (sun_path, with its final zero)."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a recorder says of itself while it runs."""

    id: str
    path: str
    """Session file."""
    pid: int
    socket: str
    host: str
    devices: dict[str, str]
    """Name by UUID of the devices that no other run may use meanwhile."""
    name: str | None = None
    """What the user calls the session."""


def running_dir() -> Path:
    """`$XDG_STATE_HOME/heatsoak/running`."""
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG rules say to ignore a relative path.
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return base / "heatsoak" / "running"


def socket_path(session_id: str) -> Path:
    """Where the recorder of a session listens: a folder of this user alone.

    Raises:
        UsageError: the folder in /tmp belongs to somebody else.
    """
    name = f"{session_id}.sock"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        folder = Path(runtime) / "heatsoak"
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
        if _is_own(folder) and len(os.fsencode(folder / name)) <= SOCKET_PATH_BYTES:
            return folder / name
    folder = Path(f"/tmp/heatsoak-{os.getuid()}")
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    if not _is_own(folder):
        raise UsageError(
            f"{folder} is not a folder of yours alone; remove it, or set XDG_RUNTIME_DIR"
        )
    return folder / name


def _is_own(folder: Path) -> bool:
    """Whether it is a real folder that only this user can write to."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return folder.is_dir() and status.st_uid == os.getuid() and not status.st_mode & 0o022


class Registry:
    """The folder of entries, seen from one process."""

    def __init__(self) -> None:
        self._folder = running_dir()
        self._own: Path | None = None
        self._own_fd: int | None = None

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Alone among the starting recorders: two may not both find a device free.

        Raises:
            UsageError: the folder cannot be written.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise UsageError(
                f"cannot write {self._folder} ({error.strerror}); set XDG_STATE_HOME to a folder "
                "of yours"
            ) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def entries(self) -> tuple[list[Entry], list[tuple[Path, Entry | None]]]:
        """The live runs of this host, and the files that crashed ones left (None: unreadable)."""
        live: list[Entry] = []
        crashed: list[tuple[Path, Entry | None]] = []
        host = socket.gethostname()
        for path in sorted(self._folder.glob("*.json")):
            try:
                with path.open("rb") as file:
                    is_free = _try_lock(file.fileno())
                    if is_free and os.fstat(file.fileno()).st_nlink == 0:
                        continue  # It ended between the two looks, and not in a crash.
                    entry = _parse(file.read())
            except FileNotFoundError:
                continue
            if entry is not None and entry.host != host:
                continue  # A home shared by machines; a lock need not reach across.
            if is_free:
                crashed.append((path, entry))
            elif entry is not None:
                live.append(entry)
        return live, crashed

    def clear_crashed(self) -> list[str]:
        """End what crashed runs left, close their sessions; a sentence about each.

        Call it within `exclusive`.
        """
        notices = []
        for path, entry in self.entries()[1]:
            log = path.with_suffix(".log")
            if entry is not None:
                notices.append(_close(entry, _last_words(log)))
            path.unlink(missing_ok=True)
            log.unlink(missing_ok=True)
        return notices

    def check_free(self, devices: Sequence[DeviceInfo], path: Path) -> None:
        """Refuse what another live run uses.

        Args:
            devices: that are to be loaded.
            path: of the session file that is to be written.

        Raises:
            DeviceUnavailableError: one of the devices is in use; the text names the run.
            UsageError: the file is being written.
        """
        live = self.entries()[0]
        for entry in live:
            if Path(entry.path).resolve() == path.resolve():
                raise UsageError(f"{path} is being written by the run {entry.id}")
        for device in devices:
            for entry in live:
                if device.uuid in entry.devices:
                    raise DeviceUnavailableError(
                        f"{device.device_id} ({device.name}) is in use by the run {entry.id}; "
                        f"`heatsoak stop {entry.id}` ends it"
                    )

    def enter(self, entry: Entry) -> None:
        """Register this process, until it ends or calls `leave`."""
        path = self._folder / f"{entry.id}.json"
        # Locked before it has its name: nobody may take a run that is starting for a crashed one.
        new = path.with_suffix(".new")
        self._own_fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(self._own_fd, fcntl.LOCK_EX)
        os.write(self._own_fd, json.dumps(asdict(entry)).encode())
        new.rename(path)
        self._own = path

    def open_log(self) -> int:
        """A descriptor for the recorder's last words, should it crash."""
        assert self._own is not None
        path = self._own.with_suffix(".log")
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def leave(self) -> None:
        """The run is over and its file closed."""
        if self._own is None or self._own_fd is None:
            return
        self._own.with_suffix(".log").unlink(missing_ok=True)
        self._own.unlink(missing_ok=True)
        Path(json.loads(os.pread(self._own_fd, 1 << 16, 0))["socket"]).unlink(missing_ok=True)
        os.close(self._own_fd)
        self._own = self._own_fd = None


def exclusive_devices(devices: Sequence[DeviceInfo]) -> dict[str, str]:
    """Name by UUID of the devices that only one run may use; any number may use arithmetic."""
    return {d.uuid: d.name for d in devices if d.kind != "synthetic"}


def _close(entry: Entry, last_words: str) -> str:
    ended, left = end_marked(entry.id)
    Path(entry.socket).unlink(missing_ok=True)
    text = f"the run {entry.id} ended in a crash"
    try:
        if close_crashed(Path(entry.path)):
            text += f"; closed {entry.path} as interrupted with what was recorded"
    except (UsageError, OSError) as error:
        text += f"; {error}"
    if ended:
        text += f"; ended {ended} processes it left"
    if left:
        text += f"; {left} processes it left would not end"
    return f"{text}; it said: {last_words}" if last_words else text


def _last_words(log: Path) -> str:
    """The last line of a crashed recorder's stderr."""
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][:300] if lines else ""


def _try_lock(fd: int) -> bool:
    """Whether nobody holds the lock; shared, so that two that look do not see each other."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _parse(text: bytes) -> Entry | None:
    try:
        return Entry(**json.loads(text))
    except (ValueError, TypeError):
        return None
