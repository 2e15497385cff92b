"""Opening session files to read: whatever state, folder and name they are in."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

import psutil
import pytest

from heatsoak.errors import UsageError
from heatsoak.session import access
from heatsoak.session.access import check_is_session, is_network_file_system, reading
from heatsoak.session.result import load_result
from heatsoak.session.rows import Batch, EventRow
from heatsoak.session.schema import VERSION
from heatsoak.session.store import close_crashed, copy_session
from heatsoak.session.tail import Tail


@pytest.fixture
def open_temporary(open_folder, monkeypatch):
    """Temporary files go where anybody may write, and where a test can count them."""
    folder = open_folder / "temporary"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def session_folder(open_folder):
    folder = open_folder / "sessions"
    folder.mkdir(mode=0o755)
    return folder


def recorded(sessions, path, *, is_closed):
    writer = sessions.create(path)
    for t in range(3):
        writer.write(sessions.second(t))
    if is_closed:
        writer.close("interrupted")
    return writer


def crashed(sessions, path):
    """What a crash leaves, by copying the files of a session that is being recorded."""
    there = path.with_name("there")
    there.mkdir()
    writer = recorded(sessions, there / path.name, is_closed=False)
    for file in there.iterdir():
        if not file.name.endswith("-shm"):
            shutil.copyfile(file, path.with_name(file.name))
    writer.close("interrupted")
    shutil.rmtree(there)


# -- folders that cannot be written -----------------------------------------------------------


def test_a_closed_session_in_a_folder_that_cannot_be_written(
    sessions, session_folder, as_nobody, open_temporary
):
    path = session_folder / "s.heatsoak"
    recorded(sessions, path, is_closed=True)
    path.chmod(0o444)
    session_folder.chmod(0o555)
    with as_nobody():
        assert len(Tail(path).poll().samples) == 3
        assert load_result(path)["session"]["state"] == "interrupted"
    assert list(session_folder.iterdir()) == [path]
    assert list(open_temporary.iterdir()) == []


def test_a_crashed_session_in_a_folder_that_cannot_be_written(
    sessions, session_folder, as_nobody, open_temporary
):
    path = session_folder / "s.heatsoak"
    crashed(sessions, path)
    wal = path.with_name("s.heatsoak-wal")
    assert wal.stat().st_size
    for file in session_folder.iterdir():
        file.chmod(0o444)
    session_folder.chmod(0o555)
    before = sorted(session_folder.iterdir())
    with as_nobody():
        follower = Tail(path)
        assert len(follower.poll().samples) == 3  # All of it is still in the log.
        assert follower.state == "recording"
        copy_session(path, open_temporary / "copy.heatsoak")
    assert sorted(session_folder.iterdir()) == before
    assert [file.name for file in open_temporary.iterdir()] == ["copy.heatsoak"]
    assert len(Tail(open_temporary / "copy.heatsoak").poll().samples) == 3


def test_a_file_that_has_to_be_copied_is_copied_once_until_it_changes(
    sessions, session_folder, as_nobody, open_temporary, monkeypatch
):
    copies = []
    copyfile = shutil.copyfile
    monkeypatch.setattr(
        access.shutil, "copyfile", lambda *files: (copies.append(files), copyfile(*files))
    )
    path = session_folder / "s.heatsoak"
    crashed(sessions, path)
    copies.clear()
    session_folder.chmod(0o555)
    with as_nobody():
        follower = Tail(path)
        assert len(follower.poll().samples) == 3
        assert len(copies) == 2  # The file and its log.
        assert follower.poll() is None
        assert follower.poll() is None
        assert len(copies) == 2
    session_folder.chmod(0o755)
    assert close_crashed(path)
    session_folder.chmod(0o555)
    with as_nobody():
        assert follower.poll().meta["state"] == "interrupted"
        assert len(copies) == 2  # One file now, read where it lies.


@pytest.mark.parametrize("is_log_empty", [True, False])
def test_a_crashed_session_on_a_file_system_that_is_read_only(sessions, small_disk, is_log_empty):
    disk = small_disk(2000)
    path = disk / "s.heatsoak"
    crashed(sessions, path)
    if is_log_empty:  # It crashed just after it was created.
        path.with_name("s.heatsoak-wal").write_bytes(b"")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert len(Tail(path).poll().samples) == (0 if is_log_empty else 3)
    with pytest.raises(UsageError, match="cannot close"):
        close_crashed(path)


def test_anothers_session_being_recorded_in_a_folder_that_cannot_be_written(
    sessions, session_folder, as_nobody, open_temporary
):
    path = session_folder / "s.heatsoak"
    writer = recorded(sessions, path, is_closed=False)
    with as_nobody():
        follower = Tail(path)
        assert len(follower.poll().samples) == 3
    writer.write(sessions.second(3))
    with as_nobody():
        assert [s.t_s for s in follower.poll().samples] == [3.0]
    writer.close("interrupted")
    with as_nobody():
        assert follower.poll().meta["state"] == "interrupted"


def test_a_commit_half_done_on_a_network_file_system_is_undone_in_a_copy(
    sessions, tmp_path, open_temporary
):
    path = tmp_path / "s.heatsoak"
    recorded(sessions, path, is_closed=True)
    script = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA cache_size=1')\n"
        "c.execute('PRAGMA cache_spill=1')\n"
        "c.execute('BEGIN IMMEDIATE')\n"
        "c.execute(\"UPDATE meta SET value = 'half' WHERE key = 'host'\")\n"
        "rows = [('x' * 3000,)] * 500\n"
        "c.executemany(\"INSERT INTO log VALUES (0, 'job-0', 'stdout', ?)\", rows)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert path.with_name("s.heatsoak-journal").stat().st_size
    assert b"half" in path.read_bytes()
    batch = Tail(path).poll()
    assert batch.meta["host"] == "aurora"
    assert len(batch.logs) == 3
    assert list(open_temporary.iterdir()) == []


# -- names ------------------------------------------------------------------------------------


def test_a_link_means_what_it_points_to(sessions, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    path, link = tmp_path / "elsewhere" / "s.heatsoak", tmp_path / "link.heatsoak"
    link.symlink_to(path)
    writer = recorded(sessions, path, is_closed=False)
    assert len(Tail(link).poll().samples) == 3
    writer.close("interrupted")
    assert load_result(link)["session"]["state"] == "interrupted"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["elsewhere", "link.heatsoak"]


def test_a_link_to_a_crashed_session_means_its_log_too(
    sessions, session_folder, open_folder, as_nobody
):
    path, link = session_folder / "s.heatsoak", open_folder / "link.heatsoak"
    crashed(sessions, path)
    link.symlink_to(path)
    session_folder.chmod(0o555)
    with as_nobody():
        assert len(Tail(link).poll().samples) == 3


def test_a_relative_path(sessions, tmp_path, monkeypatch):
    recorded(sessions, tmp_path / "s.heatsoak", is_closed=True)
    monkeypatch.chdir(tmp_path)
    assert len(Tail(Path("s.heatsoak")).poll().samples) == 3


# -- what is no session -----------------------------------------------------------------------


def test_what_is_no_session_says_what_it_is(tmp_path, as_nobody, open_folder):
    def words(path):
        with pytest.raises(UsageError) as caught:
            check_is_session(path)
        assert "\n" not in str(caught.value)
        return str(caught.value).removeprefix(f"{path} ")

    gone = tmp_path / "gone"
    assert words(gone) == f"there is no file {gone}"
    assert words(tmp_path / "\0") != ""
    assert words(tmp_path) == "is a folder, not a session file"
    text = tmp_path / "text"
    text.write_text("a text that is long enough to be a database header, and more" * 100)
    assert words(text) == "cannot be read: it is no session file"
    (tmp_path / "empty").touch()
    assert words(tmp_path / "empty") == "is no session file of heatsoak"
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE meta (key, value)")
    other.close()
    assert words(tmp_path / "other") == "is no session file of heatsoak"
    os.mkfifo(tmp_path / "pipe")
    assert words(tmp_path / "pipe") == "is no ordinary file"
    (tmp_path / "loop").symlink_to("loop")
    assert words(tmp_path / "loop") == f"there is no file {tmp_path / 'loop'}"
    secret = open_folder / "secret"
    secret.touch(mode=0o600)
    with as_nobody():
        if os.geteuid() == secret.stat().st_uid:
            secret.chmod(0o000)
        assert words(secret) == "cannot be read: Permission denied"


def test_a_newer_version_is_refused_with_a_sentence(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    recorded(sessions, path, is_closed=True)
    sessions.rows(path, "PRAGMA user_version=7")
    for read in (check_is_session, load_result, lambda p: Tail(p).poll()):
        with pytest.raises(UsageError) as caught:
            read(path)
        assert str(caught.value) == (
            f"{path} was made by a newer heatsoak "
            f"(its version is 7, this one reads up to {VERSION}); update heatsoak to read it"
        )


def test_a_damaged_session_says_so(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    recorded(sessions, path, is_closed=True)
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))
    with pytest.raises(UsageError, match="cannot be read: it is damaged"):
        Tail(path).poll()
    path.write_bytes(whole)
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO results VALUES (1, '0', 'job-0', '{half')")
    connection.commit()
    for read in (load_result, lambda p: Tail(p).poll()):
        with pytest.raises(UsageError, match="is damaged: Expecting property name"):
            read(path)
    connection.execute("DELETE FROM meta WHERE key IN ('host', 'speed')")
    connection.commit()
    connection.close()
    with pytest.raises(UsageError, match=r"is damaged: it does not say its host, speed"):
        load_result(path)


# -- care -------------------------------------------------------------------------------------


def test_a_reader_cannot_write(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    recorded(sessions, path, is_closed=True)
    with pytest.raises(UsageError, match="readonly"), reading(path) as connection:
        connection.execute("DELETE FROM samples")


def test_no_process_opens_its_session_but_through_sqlite(tmp_path):
    """Closing any handle of one's own would drop the locks of SQLite's."""
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from conftest import Sessions\n"
        "from heatsoak.session.library import list_sessions\n"
        "from heatsoak.session.result import load_result\n"
        "from heatsoak.session.store import close_crashed, copy_session\n"
        "from heatsoak.session.tail import Tail\n"
        "path, opened = Path(sys.argv[1]), []\n"
        "def note(event, args):\n"
        "    if event == 'open':\n"
        "        opened.append(str(args[0]))\n"
        "sys.addaudithook(note)\n"
        "sessions = Sessions()\n"
        "writer = sessions.create(path)\n"
        "writer.write(sessions.second(0))\n"
        "Tail(path).poll(), load_result(path), list_sessions(path.parent)\n"
        "copy_session(path, path.with_name('copy.heatsoak'))\n"
        "writer.close('interrupted')\n"
        "close_crashed(path)\n"
        "print(*(n for n in opened if 's.heatsoak' in n), sep='\\n')\n"
    )
    command = [
        sys.executable,
        "-c",
        script,
        str(tmp_path / "s.heatsoak"),
        str(Path(__file__).parent),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    opened = [Path(name).name for name in done.stdout.split()]
    assert len(opened) == 1  # The ballast, under the name it is made with.
    assert opened[0].endswith("-ballast")


def test_file_systems_that_several_machines_share(tmp_path, monkeypatch):
    assert not is_network_file_system(tmp_path / "s.heatsoak")
    mount = namedtuple("mount", "mountpoint fstype")
    mounts = [mount("/", "ext4"), mount("/net", "nfs4"), mount("/net/disk", "xfs"),
              mount("/home/me/remote", "fuse.rclone")]  # fmt: skip
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: mounts)
    found = [
        is_network_file_system(Path(path))
        for path in ("/net/a", "/net/disk/a", "/network/a", "/home/me/remote/a", "/home/me/a")
    ]
    assert found == [True, False, False, True, False]


def test_an_old_reader_sees_what_a_writer_after_it_adds(sessions, tmp_path):
    """Followers open and close at each look, so that they never keep the writer from closing."""
    path = tmp_path / "s.heatsoak"
    writer = recorded(sessions, path, is_closed=False)
    followers = [Tail(path) for _ in range(5)]
    for follower in followers:
        follower.poll()
    writer.write(Batch({}, events=(EventRow(9.0, "mark", "now"),)))
    writer.close("interrupted")
    assert not path.with_name("s.heatsoak-wal").exists()
    assert {follower.poll().events[0].text for follower in followers} == {"now"}
