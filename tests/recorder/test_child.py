"""A child under guard, with real processes: records, output, and that nothing survives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from heatsoak import progress
from heatsoak.clock import SessionClock
from heatsoak.launch.child import Child, workload_environment
from heatsoak.launch.guard import PR_SET_CHILD_SUBREAPER, prctl
from heatsoak.launch.processes import become_subreaper
from heatsoak.recipe import Recipe
from heatsoak.telemetry.device import DeviceInfo

TINY = str(Path(__file__).with_name("tiny_workload.py"))
RECIPE = Recipe("tiny", "cpu-tiny", 0, 1, 1, "fp32", "none", False, False, "none")
CPU = DeviceInfo("cpu", "cpu-here", "a CPU", "cpu", "measured")
CARD = DeviceInfo("0", "GPU-asked", "a card", "nvidia", "measured")


class Run:
    """A child and all it ever reported."""

    def __init__(self, *behaviour, device=CPU, **options):
        environment = workload_environment(
            os.environ, session_id="test-child", recipe=RECIPE, device=device, seed=1
        )
        clock = SessionClock()
        command = [sys.executable, TINY, *behaviour]
        self.child = Child(command, environment, clock, device=device, **options)
        self.clock, self.records, self.log, self.warnings = clock, [], [], []
        self.child.start(0.0)

    def poll(self):
        self.records += self.child.poll(self.clock.now_s())
        self.log += self.child.take_log()
        self.warnings += self.child.take_warnings()
        return self

    def kinds(self):
        return {type(timed.record) for timed in self.poll().records}

    def is_gone(self):
        return self.poll().child.is_gone


@pytest.fixture
def run():
    started = []

    def start(*behaviour, **options):
        started.append(Run(*behaviour, **options))
        return started[-1]

    yield start
    for one in started:
        if not one.child.is_gone:
            one.child.kill()
    for one in started:
        while not one.child.is_gone:
            one.poll()


def test_records_arrive_in_order_with_session_time(run, until):
    one = run()
    until(lambda: progress.Steps in one.kinds())
    assert isinstance(one.records[0].record, progress.Hello)
    times = [timed.t_s for timed in one.records]
    assert times == sorted(times)
    assert 0.0 <= times[0] <= times[-1] <= one.clock.now_s()


def test_stop_ends_a_child_that_says_done(run, until):
    one = run()
    until(lambda: progress.Steps in one.kinds())
    one.child.stop()
    until(one.is_gone)
    assert one.child.failure is None
    assert isinstance(one.records[-1].record, progress.Done)


def test_a_child_that_ignores_term_is_killed_with_what_it_started(run, until, mark):
    one = run("ignore-term", "grandchild", grace_s=0.2)
    until(lambda: progress.Steps in one.kinds())
    one.child.stop()
    until(one.is_gone, 5.0)
    assert one.child.failure is None
    assert one.warnings == ["the workload did not end within 0.2 s of being asked; killed"]
    assert _count(mark) == 0


def test_what_a_child_leaves_behind_is_ended_and_told(run, until, mark):
    one = run("grandchild", "exit=0")
    until(one.is_gone)
    assert one.warnings == ["1 processes the workload left behind were ended"]
    assert "exit status 0" in one.child.failure
    assert _count(mark) == 0


def test_kill_9_of_the_child_is_told_in_words_with_its_stderr(run, until):
    one = run("stderr=the last words")
    until(lambda: progress.Steps in one.kinds() and one.child.pid)
    os.kill(one.child.pid, signal.SIGKILL)
    until(one.is_gone)
    assert one.child.failure == "the workload was killed by SIGKILL (signal 9)"
    assert list(one.child.stderr_tail) == ["the last words"]


def test_an_exit_status_is_told(run, until):
    one = run("exit=3")
    until(one.is_gone)
    assert one.child.failure == "the workload ended by itself with exit status 3"


def test_a_failed_record_is_told_instead_of_the_exit_status(run, until):
    one = run("failed=out of memory")
    until(one.is_gone)
    assert one.child.failure == "the workload failed: out of memory"


def test_b1_a_child_on_another_device_fails_and_nothing_of_it_counts(run, until):
    one = run("uuid=GPU-other", device=CARD)
    until(one.is_gone)
    assert "GPU-other" in one.child.failure
    assert "GPU-asked" in one.child.failure
    assert one.kinds() == set()


def test_b1_a_child_that_sees_another_memory_fails_and_nothing_of_it_counts(run, until):
    device = replace(CARD, memory_total_bytes=80 * 1024**3)
    one = run("memory=25000000000", device=device)
    until(one.is_gone)
    assert "23.3 GiB of memory on GPU-asked, the driver 80.0 GiB" in one.child.failure
    assert one.kinds() == set()


def test_b1_a_child_that_sees_the_memory_of_its_device_counts(run, until):
    one = run("memory=85000000000", device=replace(CARD, memory_total_bytes=80 * 1024**3))
    until(lambda: progress.Steps in one.kinds())
    assert one.child.failure is None


def test_b1_work_before_the_hello_is_not_measured(run, until):
    one = run("early")
    until(one.is_gone)
    assert "before it said on which device" in one.child.failure
    assert one.kinds() == set()


def test_a_child_that_never_says_hello_is_ended(run, until):
    one = run("mute", hello_within_s=0.2)
    until(one.is_gone)
    assert "not instrumented" in one.child.failure


def test_a_bad_line_is_told_and_not_fatal(run, until):
    one = run("bad-line")
    until(lambda: progress.Steps in one.kinds())
    assert len(one.warnings) == 1
    assert "not a record" in one.warnings[0]
    assert one.child.failure is None


def test_a_flood_of_output_is_drained_and_bounded(run, until):
    one = run("chatty")
    polls = 0

    def count():
        nonlocal polls
        polls += 1
        return sum(isinstance(timed.record, progress.Steps) for timed in one.poll().records)

    until(lambda: count() > 3)
    assert 100 <= len(one.log) <= 100 * polls
    assert one.log[0].text == "all work and no play [31m makes a dull log"
    one.child.stop()
    until(one.is_gone)
    assert one.child.failure is None
    assert "lines of the workload's stdout were not kept" in one.warnings[-1]


def test_a_program_that_does_not_exist_is_told(until):
    child = Child(["/nowhere/at-all"], os.environ, SessionClock(), device=CPU)
    child.start(0.0)
    until(lambda: child.poll(1.0) or child.is_gone)
    assert child.failure == "the workload ended by itself with exit status 127"
    assert list(child.stderr_tail) == ["cannot start /nowhere/at-all: No such file or directory"]


def test_kill_9_of_the_guard_leaves_nothing(run, until, mark):
    become_subreaper()
    try:
        one = run("grandchild")
        until(lambda: progress.Steps in one.kinds())
        one.child._guard.kill()
        until(one.is_gone, 5.0)
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0)
    assert "guard" in one.child.failure
    assert _count(mark) == 0


def test_a_child_dies_with_its_guard_even_if_nobody_sweeps(run, until, mark):
    one = run("ignore-term")
    until(lambda: progress.Steps in one.kinds() and one.child.pid)
    one.child._guard.kill()
    until(lambda: not Path(f"/proc/{one.child.pid}").exists(), 5.0)
    until(one.is_gone, 5.0)


def test_a_program_that_handles_no_signal_ends_when_asked(until):
    # The guard ignores SIGTERM, and what is ignored is inherited.
    child = Child(["/bin/sleep", "1000"], os.environ, SessionClock(), device=CPU)
    child.start(0.0)
    until(lambda: child.poll(1.0) or child.pid)
    child.stop()
    until(lambda: child.poll(1.0) or child.is_gone, 5.0)
    assert child.failure is None


def test_kill_9_of_the_parent_leaves_nothing(until, mark):
    program = textwrap.dedent("""
        import os, sys
        from heatsoak.clock import SessionClock
        from heatsoak.launch.child import Child
        from heatsoak.telemetry.device import DeviceInfo
        cpu = DeviceInfo("cpu", "cpu-here", "a CPU", "cpu", "measured")
        child = Child(sys.argv[1:], os.environ, SessionClock(), device=cpu)
        child.start(0.0)
        print(flush=True)
        sys.stdin.read()
    """)
    command = [sys.executable, "-c", program, sys.executable, TINY, "ignore-term", "grandchild"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        parent.stdout.readline()
        until(lambda: _count(mark) >= 4)  # parent, guard, child, grandchild
        parent.kill()
        until(lambda: _count(mark) == 0, 5.0)


@pytest.mark.parametrize("uuid", ["GPU-asked", "MIG-asked"])
def test_b1_a_child_sees_the_one_device_by_its_uuid_whatever_its_user_sees(uuid):
    base = {"CUDA_VISIBLE_DEVICES": "3,1", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}
    device = replace(CARD, uuid=uuid)
    made = workload_environment(base, session_id="s", recipe=RECIPE, device=device, seed=7)
    assert made["CUDA_VISIBLE_DEVICES"] == made["HEATSOAK_DEVICE"] == uuid
    assert made["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [("", None), (":", None), ("relative", None), ("/a::/b:.", "/a:/b")],
)
def test_only_absolute_parts_of_the_python_path_are_passed_on(given, passed_on):
    base = {"PYTHONPATH": given, "KEPT": "1"}
    made = workload_environment(base, session_id="s", recipe=RECIPE, device=CPU, seed=7)
    assert made.get("PYTHONPATH") == passed_on
    assert made["KEPT"] == "1"
    assert made["PYTHONSAFEPATH"] == "1"
    assert made["HEATSOAK_SESSION"] == "s"
    assert made["CUDA_VISIBLE_DEVICES"] == ""


def _count(mark):
    found = 0
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                found += mark.encode() in (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
    return found
