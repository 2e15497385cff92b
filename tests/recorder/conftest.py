"""Folders of its own for every test, and no process that outlives one."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from pathlib import Path

import pytest

from heatsoak.clock import monotonic_s
from heatsoak.recorder import client
from heatsoak.recorder.plan import Plan

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


TINY_LITERAL = """
WORKLOAD = {
    "version": 3,
    "unit": "samples",
    "title": "A workload without torch",
    "archetype": "tests",
    "kinds": ["cpu", "nvidia"],
    "sizes": {"cpu-tiny": {"parameters": 1e9, "memory_gib": 0.1, "kinds": ["cpu", "nvidia"]}},
    "defaults": {
        "size": "cpu-tiny", "context": 4096, "micro_batch": 1, "accumulate": 1,
        "precision": "fp32", "attention": "none", "compile": False, "checkpointing": False,
        "optimizer": "none", "settings": {},
    },
    "options": {"behaviour": "str"},
}
"""
TINY_MAIN = """
import json, os, runpy, sys
behaviour = json.loads(os.environ["HEATSOAK_RECIPE"])["settings"].get("behaviour", "")
sys.argv = [sys.argv[0], *behaviour.split(",")]
runpy.run_path({path!r}, run_name="__main__")
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Puts a package of workloads that needs no torch in the place of the real one."""
    package = tmp_path / "path" / "heatsoak_workloads"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "tiny.py").write_text(TINY_LITERAL)
    (package / "synthetic.py").write_text(
        TINY_LITERAL.replace('["cpu", "nvidia"]', '["synthetic"]').replace(
            '["cpu"]', '["synthetic"]'
        )
    )
    (package / "__main__.py").write_text(TINY_MAIN.format(path=str(TINY_WORKLOAD)))
    monkeypatch.setenv("PYTHONPATH", str(package.parent), prepend=os.pathsep)


@pytest.fixture
def begin(mark):
    """Starts runs through the client, and ends those that a test leaves."""
    started = []

    def start(devices, **asked):
        started.append(client.start(Plan(devices, **asked)))
        return started[-1]

    yield start
    for run in started:
        if client.is_alive(run):
            client.kill(run)
            client.wait_ended(run, 15.0)
