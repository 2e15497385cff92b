"""Folders of its own for every test, and no process that outlives one."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from pathlib import Path

import pytest

from heatsoak.clock import monotonic_s

TINY_WORKLOAD = Path(__file__).with_name("tiny_workload.py")


@pytest.fixture(autouse=True)
def mark(monkeypatch, tmp_path):
    """XDG folders of the test's own; afterwards no process that the test started is left."""
    mark = f"HEATSOAK_TEST={secrets.token_hex(8)}"
    # A socket's path has room for about a hundred characters; pytest's folders take most of them.
    runtime = Path(tempfile.mkdtemp(prefix="hs-"))
    runtime.chmod(0o700)
    monkeypatch.setenv("HEATSOAK_TEST", mark.partition("=")[2])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    yield mark
    left = wait_gone(mark)
    for pid in left:
        os.kill(pid, 9)
    shutil.rmtree(runtime)
    assert left == []


@pytest.fixture
def until():
    return wait_until


def wait_until(condition, deadline_s=15.0):
    """Ask `condition` again and again; its first true answer, or the test fails."""
    give_up_s = monotonic_s() + deadline_s
    while True:
        answer = condition()
        if answer:
            return answer
        assert monotonic_s() < give_up_s, f"not within {deadline_s} s"
        os.sched_yield()
        pause()


def pause():
    """Let others run between two looks at a condition."""
    import select

    select.select([], [], [], 0.01)


def carrying(mark):
    """Live processes with `mark` in their environment, this one left out."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def wait_gone(mark, deadline_s=5.0):
    """Wait until no process carries `mark`; those that still do."""
    give_up_s = monotonic_s() + deadline_s
    while (left := carrying(mark)) and monotonic_s() < give_up_s:
        pause()
    return left
