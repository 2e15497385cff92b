"""The real child process: its records through a real pipe, and its ends."""

from __future__ import annotations

import ast
import itertools
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

import heatsoak_workloads
from heatsoak.progress import Done, Failed, Hello, LineBuffer, Steps, decode

DEADLINE_S = 60.0


class Child:
    """A workload with its pipe."""

    def __init__(self, *, command=("-P", "-m", "heatsoak_workloads", "llm_pretrain"), **environ):
        self.read, write = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, *command],
            env={
                **os.environ,
                "HEATSOAK_PROGRESS_FD": str(write),
                "HEATSOAK_DEVICE": "cpu",
                "CUDA_VISIBLE_DEVICES": "",
                **environ,
            },
            pass_fds=[write],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.close(write)
        self.buffer = LineBuffer()
        self.records = []
        self.is_over = False

    def follow(self, until):
        """Read records until one fulfils `until`, or the pipe ends."""
        deadline = time.monotonic() + DEADLINE_S
        while not self.is_over and not any(until(record) for record in self.records):
            left = deadline - time.monotonic()
            assert left > 0, f"not seen in {DEADLINE_S} s: {self.records[-3:]}"
            if select.select([self.read], [], [], left)[0]:
                data = os.read(self.read, 65536)
                self.is_over = not data
                self.records += [decode(line) for line in self.buffer.feed(data)]

    def end(self):
        """Wait for the end; exit code and stderr."""
        self.follow(lambda record: False)
        _, err = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, err.decode()


@pytest.fixture
def start():
    children = []

    def start_child(**kwargs):
        children.append(Child(**kwargs))
        return children[-1]

    yield start_child
    for child in children:
        child.process.kill()
        child.process.communicate()
        os.close(child.read)


def small_recipe(**changes):
    path = Path(heatsoak_workloads.__file__).parent / "llm_pretrain.py"
    literal = ast.literal_eval(ast.parse(path.read_bytes()).body[2].value)
    values = {**literal["defaults"], "workload": "llm_pretrain", "context": 32, "micro_batch": 1}
    return json.dumps({**values, **changes})


def test_a_run_from_hello_to_sigterm(start, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    child = start(HEATSOAK_RECIPE=small_recipe())
    child.follow(lambda record: isinstance(record, Steps) and record.steps_done >= 10)
    asked_s = time.monotonic()
    child.process.terminate()
    code, err = child.end()
    assert code == 0, err
    assert time.monotonic() - asked_s < 8
    hello, *rest = child.records
    assert isinstance(hello, Hello)
    assert (hello.device_uuid, hello.pid) == (None, child.process.pid)
    assert hello.facts["threads"] == len(os.sched_getaffinity(0))
    assert hello.facts["precision"] == "bf16-mixed"
    steps = [record for record in rest if isinstance(record, Steps)]
    for before, after in itertools.pairwise(steps):
        assert before.monotonic_s < after.monotonic_s
        assert before.units_done < after.units_done
        assert before.steps_done < after.steps_done
    assert all(record.units_done == 32 * record.steps_done for record in steps)
    times = [record.monotonic_s for record in child.records]
    assert times == sorted(times)
    done = child.records[-1]
    assert isinstance(done, Done)
    assert (done.units_done, done.steps_done) == (steps[-1].units_done, steps[-1].steps_done)
    assert list(tmp_path.iterdir()) == []
    assert "Warning" not in err
    assert "Tip" not in err


def test_a_stop_before_the_first_step_ends_at_once(start):
    child = start(HEATSOAK_RECIPE=small_recipe(size="125M", context=2048, micro_batch=8))
    child.follow(lambda record: isinstance(record, Hello))
    child.process.terminate()
    code, err = child.end()
    assert code == 0, err
    assert child.records[-1].units_done == 0


def test_the_end_of_the_recorder_ends_the_child(start):
    child = start(HEATSOAK_RECIPE=small_recipe())
    child.follow(lambda record: isinstance(record, Steps))
    os.close(child.read)
    child.read = os.open(os.devnull, os.O_RDONLY)
    assert child.process.wait(timeout=DEADLINE_S) == 1


def test_without_torch_one_line_says_so(start, tmp_path):
    (tmp_path / "torch.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')"
    )
    child = start(PYTHONPATH=str(tmp_path))
    code, err = child.end()
    assert code == 1
    [failed] = child.records
    assert isinstance(failed, Failed)
    assert "torch is not installed" in failed.text
    assert "heatsoak[train]" in failed.text
    assert "Traceback" not in err


def test_a_crash_is_told_in_one_line_with_the_traceback_on_stderr(start, tmp_path):
    (tmp_path / "torch.py").write_text("raise RuntimeError('broken build\\nsecond line')")
    child = start(PYTHONPATH=str(tmp_path))
    code, err = child.end()
    assert code == 1
    [failed] = child.records
    assert failed.text == "RuntimeError: broken build"
    assert "Traceback" in err
    assert "second line" in err


def test_a_recipe_for_a_gpu_fails_on_the_cpu_without_traceback(start):
    child = start(HEATSOAK_RECIPE=small_recipe(precision="tf32"))
    code, err = child.end()
    assert code == 1
    [failed] = child.records
    assert "needs a GPU" in failed.text
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((), "usage"), (("nothing",), "usage"), (("synthetic",), "inside the recorder")],
)
def test_wrong_usage_says_what_is_right(arguments, said):
    command = [sys.executable, "-P", "-m", "heatsoak_workloads", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
