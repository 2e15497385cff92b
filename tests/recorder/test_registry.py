"""Where runs register, and what a look at their entries finds."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from heatsoak.errors import DeviceUnavailableError, UsageError
from heatsoak.recorder.registry import Entry, Registry, running_dir, socket_path
from heatsoak.telemetry.device import DeviceInfo

CPU = DeviceInfo("cpu", "cpu-here", "a CPU", "cpu", "measured")


@pytest.fixture
def entry(tmp_path):
    return Entry(
        id="0123abcd",
        path=str(tmp_path / "a.heatsoak"),
        pid=1,
        socket=str(socket_path("0123abcd")),
        host=socket.gethostname(),
        devices={"cpu-here": "a CPU"},
    )


@pytest.fixture
def registry(entry):
    registry = Registry()
    with registry.exclusive():
        registry.enter(entry)
    yield registry
    registry.leave()


def test_an_entry_lives_as_long_as_it_is_held(registry, entry):
    other = Registry()
    assert other.entries() == ([entry], [])
    registry.leave()
    assert other.entries() == ([], [])
    assert not Path(entry.socket).exists()


def test_an_entry_whose_lock_is_free_is_a_crash(registry, entry):
    os.close(registry._own_fd)
    registry._own_fd = None
    live, ((path, crashed),) = Registry().entries()
    assert live == []
    assert (path.stem, crashed) == (entry.id, entry)
    path.with_suffix(".log").write_text("Traceback\nValueError: what it died of\n")
    (notice,) = Registry().clear_crashed()
    assert notice.startswith("the run 0123abcd ended in a crash")
    assert notice.endswith("it said: ValueError: what it died of")
    assert list(running_dir().glob("0123abcd*")) == []


def test_a_device_and_a_file_in_use_are_refused(registry, entry, tmp_path):
    other = Registry()
    with pytest.raises(DeviceUnavailableError, match="heatsoak stop 0123abcd"):
        other.check_free([CPU], tmp_path / "b.heatsoak")
    with pytest.raises(UsageError, match="being written"):
        other.check_free([], tmp_path / "." / "a.heatsoak")
    other.check_free([replace(CPU, uuid="cpu-there")], tmp_path / "b.heatsoak")


def test_runs_of_another_host_are_left_alone(registry, entry):
    path = running_dir() / "9999ffff.json"
    path.write_text(json.dumps(asdict(replace(entry, id="9999ffff", host="elsewhere"))))
    assert Registry().entries() == ([entry], [])
    assert Registry().clear_crashed() == []
    assert path.exists()


def test_an_unreadable_entry_is_cleared_away(registry):
    path = running_dir() / "torn.json"
    path.write_text('{"id": "to')
    assert Registry().clear_crashed() == []
    assert not path.exists()


def test_a_folder_that_cannot_be_written_is_told(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="set XDG_STATE_HOME"), Registry().exclusive():
        pass


def test_the_socket_lies_where_only_this_user_can_write(monkeypatch, tmp_path):
    runtime = Path(os.environ["XDG_RUNTIME_DIR"])
    assert socket_path("a").parent == runtime / "heatsoak"
    (runtime / "heatsoak").chmod(0o777)
    assert socket_path("a").parent == Path(f"/tmp/heatsoak-{os.getuid()}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("long" * 30)))
    assert socket_path("a").parent == Path(f"/tmp/heatsoak-{os.getuid()}")
