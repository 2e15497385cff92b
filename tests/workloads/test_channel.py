"""The pipe to the recorder: full, broken, or not a pipe at all."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest

from heatsoak.progress import DESCRIPTOR_VARIABLE, Failed, LineBuffer, Phase, Steps, decode
from heatsoak_workloads import _channel
from heatsoak_workloads._channel import Channel, WorkloadError


@pytest.fixture
def pipe():
    read, write = os.pipe()
    yield read, write
    for descriptor in (read, write):
        with contextlib.suppress(OSError):
            os.close(descriptor)


def test_a_record_arrives_as_it_was_written(pipe):
    read, write = pipe
    record = Steps(1.5, 20.0, 2, None)
    assert Channel(write).write(record)
    [line] = LineBuffer().feed(os.read(read, 4096))
    assert decode(line) == record


def test_a_file_is_refused(tmp_path):
    with (tmp_path / "file").open("w") as file, pytest.raises(WorkloadError, match="not a pipe"):
        Channel(file.fileno())


@pytest.mark.parametrize("text", ["99999", "three"])
def test_a_descriptor_that_is_none_is_refused(text):
    with pytest.raises(WorkloadError, match=DESCRIPTOR_VARIABLE):
        Channel.from_environment({DESCRIPTOR_VARIABLE: text})


def test_by_hand_records_go_nowhere_and_stderr_says_so(capsys):
    channel = Channel.from_environment({})
    assert not channel.is_open
    assert channel.write(Phase(1.0, "train"))
    assert "go nowhere" in capsys.readouterr().err


def test_only_the_first_rank_writes(pipe):
    _, write = pipe
    environ = {DESCRIPTOR_VARIABLE: str(write)}
    assert Channel.from_environment(environ | {"RANK": "0"}).is_open
    assert not Channel.from_environment(environ | {"RANK": "1"}).is_open
    assert not Channel.from_environment(environ | {"LOCAL_RANK": "1"}).is_open


def test_the_pipe_is_not_handed_on(pipe):
    _, write = pipe
    os.set_inheritable(write, True)
    Channel(write)
    assert not os.get_inheritable(write)


def test_a_full_pipe_drops_steps_and_never_blocks(pipe, monkeypatch):
    read, write = pipe
    monkeypatch.setattr(_channel, "WAIT_FOR_READER_S", 0.01)
    channel = Channel(write)
    written = 0
    while channel.write(Steps(1.0, float(written), written, None)):
        written += 1
    assert written > 100
    assert not channel.write(Failed(2.0, "waited for, then given up"))
    buffer, lines = LineBuffer(), []
    while len(lines) < written:
        lines += buffer.feed(os.read(read, 65536))
    assert [decode(line).steps_done for line in lines] == list(range(written))
    assert channel.write(Steps(3.0, 1.0, 1, None))


def test_a_broken_pipe_ends_the_process():
    read, write = os.pipe()
    program = (
        "from heatsoak.progress import Phase\n"
        "from heatsoak_workloads._channel import Channel\n"
        "import sys\n"
        f"channel = Channel({write})\n"
        "sys.stdin.read()\n"
        "try:\n"
        "    channel.write(Phase(1.0, 'train'))\n"
        "finally:\n"
        "    print('still here')\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", program],
        pass_fds=[write],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    os.close(write)
    os.close(read)
    out, _ = child.communicate(timeout=30)
    assert child.returncode == 1
    assert out == b""
