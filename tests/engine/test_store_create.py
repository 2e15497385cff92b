"""Making session files: under any name, over nothing, leaving nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heatsoak.errors import UsageError
from heatsoak.session import store
from heatsoak.session.result import load_result
from heatsoak.session.rows import Batch, EventRow
from heatsoak.session.store import close_crashed, copy_session
from heatsoak.session.tail import Tail

ODD_NAMES = ("a?b#c%41 d&mode=ro.heatsoak", "überhitzt 冷.heatsoak", ":memory:", "file:x?mode=ro")


def test_an_existing_file_is_kept_unless_forced(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    path.write_text("mine")
    with pytest.raises(UsageError, match=r"exists; give another --out, or --force"):
        sessions.create(path)
    assert path.read_text() == "mine"
    with pytest.raises(UsageError, match="is no session file"):
        sessions.create(path, force=True)
    assert path.read_text() == "mine"
    assert sessions.files(tmp_path) == ["s.heatsoak"]
    path.unlink()
    for _ in range(2):
        sessions.create(path, force=True).close("interrupted")
    assert sessions.files(tmp_path) == ["s.heatsoak"]


def test_forced_over_a_crashed_session_nothing_of_its_log_comes_back(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    sessions.crash(path, 5)
    assert path.with_name("s.heatsoak-wal").stat().st_size
    writer = sessions.create(path, force=True, id="new1")
    assert Tail(path).poll().samples == ()
    writer.close("interrupted")
    assert sessions.rows(path, "SELECT count(*) FROM samples") == [(0,)]
    assert sessions.files(tmp_path) == ["s.heatsoak"]


def test_a_session_that_is_being_recorded_cannot_be_forced_away(sessions, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FREE_WITHIN_S", 0.05)
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    writer.write(sessions.second(0))
    with pytest.raises(UsageError, match="in use by another run"):
        sessions.create(path, force=True)
    writer.write(sessions.second(1))
    writer.close("interrupted")
    assert sessions.rows(path, "SELECT count(*) FROM samples") == [(2,)]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_name_is_a_name(sessions, tmp_path, name):
    path = tmp_path / name
    writer = sessions.create(path)
    writer.write(sessions.second(0))
    assert len(Tail(path).poll().samples) == 1
    copy_session(path, tmp_path / f"copy {name}")
    writer.close("interrupted")
    assert not close_crashed(path)
    assert load_result(path)["session"]["id"] == "k3f9"
    assert sessions.files(tmp_path) == sorted([name, f"copy {name}"])


def test_a_name_that_is_no_utf8(sessions, tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.heatsoak"))
    writer = sessions.create(path, name=path.name)
    writer.write(Batch({}, events=(EventRow(0.0, "mark", path.name),)))
    writer.close("interrupted")
    copy_session(path, path.with_name(f"copy-{path.name}"))
    batch = Tail(path.with_name(f"copy-{path.name}")).poll()
    assert batch.events[0].text == "caf?.heatsoak"


def test_a_relative_path_means_the_folder_of_the_start(sessions, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    writer = sessions.create(Path("s.heatsoak"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    writer.write(sessions.second(0))
    writer.close("interrupted")
    assert sessions.files(tmp_path) == ["elsewhere", "s.heatsoak"]


def test_what_cannot_be_made_leaves_nothing(sessions, tmp_path):
    with pytest.raises(UsageError, match="there is no folder"):
        sessions.create(tmp_path / "no" / "s.heatsoak")
    with pytest.raises(UsageError, match="is a folder; --out takes a file"):
        sessions.create(tmp_path)
    (tmp_path / "link.heatsoak").symlink_to("gone.heatsoak")
    with pytest.raises(UsageError, match="cannot write"):
        sessions.create(tmp_path / "link.heatsoak")
    assert sessions.files(tmp_path) == ["link.heatsoak"]


def test_a_folder_that_cannot_be_written(sessions, open_folder, as_nobody):
    open_folder.chmod(0o555)
    with as_nobody(), pytest.raises(UsageError, match=r"cannot write .*s\.heatsoak"):
        sessions.create(open_folder / "s.heatsoak")
    assert sessions.files(open_folder) == []


@pytest.mark.parametrize("kib", [40, 160, 330])
def test_a_full_disk_refuses_a_new_session_and_keeps_nothing(sessions, small_disk, kib):
    disk = small_disk(kib)
    with pytest.raises(UsageError, match=r"cannot write .*s\.heatsoak: "):
        sessions.create(disk / "s.heatsoak")
    assert sessions.files(disk) == []
