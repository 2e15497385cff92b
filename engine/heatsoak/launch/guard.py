"""Stands between recorder and child, and lets nothing of the child outlive the run.

Started as `python -I -S guard.py LIFE_FD REPORT_FD COMMAND...`, standard library only, so that it
stays a few MB beside the load it guards. It is a child subreaper: whatever the child starts and
abandons comes back to it. Only the recorder holds the other end of LIFE_FD, close-on-exec; when
that end closes, however the recorder went, or when the child ends, every descendant gets SIGKILL
until `waitpid` says there is none. A byte `T` on LIFE_FD asks the child, and only it, to end
(SIGTERM): its data loader workers are its own to stop.

REPORT_FD tells the recorder, a line each: `pid N`, then `exit N` or `signal N`, then `swept N` (how
many processes the child had left behind); it closes when the guard ends.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys

# pathlib is avoided in this file: it would cost a third of the guard's own memory.

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
SWEEP_EVERY_MS = 50
"""While something refuses to die (a process inside a driver's call), how often to look again."""


def main() -> int:
    """Run the command of the command line under guard; returns when nothing of it is left."""
    life_fd, report_fd, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    os.set_inheritable(life_fd, False)
    os.set_inheritable(report_fd, False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    # Ending the guard by a stray signal would free the child of it: only LIFE_FD counts.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    # One descriptor becomes readable for the child's end and for every orphan's that comes back
    # here; with the child's pidfd alone the orphans would stay zombies for hours.
    wake_fd, wake_write_fd = os.pipe()
    os.set_blocking(wake_fd, False)
    os.set_blocking(wake_write_fd, False)
    signal.set_wakeup_fd(wake_write_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)

    child = start(command)
    report(report_fd, f"pid {child}")
    ended = watch(child, life_fd, wake_fd)
    if ended is not None:
        report(report_fd, ended)
    report(report_fd, f"swept {sweep(child, wake_fd, report_fd)}")
    return 0


def start(command: list[str]) -> int:
    """Fork and exec `command` in its own process group; returns its pid."""
    guard = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        os.setpgid(0, 0)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(1)  # The guard died before the line above could bind us to it.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def watch(child: int, life_fd: int, wake_fd: int) -> str | None:
    """Wait for the child's end, told as `exit N` or `signal N`; None when the recorder is gone."""
    poll = select.poll()
    poll.register(life_fd, select.POLLIN)
    poll.register(wake_fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == life_fd:
                asked = os.read(life_fd, 64)
                if not asked:
                    return None
                os.kill(child, signal.SIGTERM)  # Not yet waited for: the pid is still its own.
            else:
                drain(wake_fd)
                for pid, status in reap():
                    if pid == child:
                        return ended_as(status)


def sweep(child: int, wake_fd: int, report_fd: int) -> int:
    """SIGKILL all descendants until none is left; how many there were beside the child."""
    poll = select.poll()
    poll.register(wake_fd, select.POLLIN)
    seen: set[int] = set()
    while True:
        for pid in descendants():
            seen.add(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for pid, status in reap():
            if pid == child:
                report(report_fd, ended_as(status))
        if not has_children():
            return len(seen - {child})
        poll.poll(SWEEP_EVERY_MS)
        drain(wake_fd)


def descendants() -> list[int]:
    """The pids below this process, walked through /proc; dead ones not yet waited for left out."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue
        if state != b"Z":  # A zombie's own children have already come back to the subreaper.
            children.setdefault(int(parent), []).append(int(name))
    found: list[int] = []
    below = children.get(os.getpid(), [])
    while below:
        found += below
        below = [pid for parent in below for pid in children.get(parent, [])]
    return found


def reap() -> list[tuple[int, int]]:
    """Take the ends of all processes that have ended: pid and wait status."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def has_children() -> bool:
    """Whether any child, dead or alive, is still to be waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def ended_as(status: int) -> str:
    """`exit N` or `signal N`."""
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return f"exit {os.WEXITSTATUS(status)}"


def report(report_fd: int, line: str) -> None:
    """Tell the recorder, if it is still there."""
    try:
        os.write(report_fd, line.encode() + b"\n")
    except OSError:
        return


def drain(fd: int) -> None:
    """Empty a non-blocking descriptor."""
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        return


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process, as Linux offers it.

    Raises:
        OSError: the kernel refused.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    sys.exit(main())
