"""Bad input at the command line: one line, the right exit code, no traceback."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

HEATSOAK = str(Path(sys.executable).with_name("heatsoak"))


@pytest.fixture
def command(tmp_path):
    """Runs `heatsoak ...` with its folders below `tmp_path`."""
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_RUNTIME_DIR": str(tmp_path),
    }

    def run(*arguments, **more):
        return subprocess.run(
            [HEATSOAK, *arguments], env={**environment, **more}, cwd=tmp_path,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    return run


def assert_one_line(done, code, *words):
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "-d", "cpu", "-w", "nonsense"], 2, ["nonsense", "llm_pretrain"]),
        (["run", "-d", "synthetic:rtx-5091"], 2, ["rtx-5091", "rtx-5090"]),
        (["run", "-d", "toaster"], 2, ["toaster"]),
        (["run", "-d", ""], 2, []),
        (["run", "-d", "synthetic:rtx-5090x0"], 2, []),
        (["run", "-d", "synthetic:rtx-5090", "--protocol", "eternal"], 2, ["eternal", "standard"]),
        (["run", "-d", "cpu", "--speed", "60"], 2, ["speed"]),
        (["run", "-d", "cpu", "--speed", "-1"], 2, ["-1"]),
        (["run", "-d", "cpu", "--speed", "fast"], 2, ["fast", "number above 0"]),
        (["run", "-d", "synthetic:rtx-5090", "--speed", "1e9"], 2, ["1000"]),
        (["run", "-d", "synthetic:rtx-5090", "--seed", "-1"], 2, ["seed"]),
        (["run", "-d", "synthetic:rtx-5090", "--name", "a\x1b[31m"], 2, ["printable"]),
        (["run", "-d", "synthetic:rtx-5090", "--out", "x" * 300], 2, ["cannot write"]),
        (["run", "-d", "cpu", "--set", "learning_rate=-1"], 2, ["above 0"]),
        (["run", "-d", "cpu", "--micro-batch", "9" * 30], 2, ["micro_batch"]),
        (["run", "-d", "cpu", "--size", "huge"], 2, ["huge", "cpu-tiny"]),
        (["run", "-d", "cpu", "--context", "-5"], 2, ["context"]),
        (["run", "-d", "cpu", "--set", "nonsense=1"], 2, ["nonsense"]),
        (["run", "-d", "cpu", "--set", "nonsense"], 2, ["key=value"]),
        (["run", "-d", "synthetic:rtx-5090", "--out", "/nowhere/a.heatsoak"], 2, ["/nowhere"]),
        (["run", "-d", "synthetic:rtx-5090", "--out", "/proc/a.heatsoak"], 2, ["/proc/a"]),
        (["attach"], 2, ["run"]),
        (["attach", "nothing"], 2, ["no run"]),
        (["stop"], 2, ["run"]),
        (["result", "missing.heatsoak"], 2, ["missing.heatsoak"]),
        (["nonsense"], 2, ["nonsense"]),
        ([], 2, ["--headless"]),
    ],
)
def test_bad_arguments(command, arguments, code, words):
    assert_one_line(command(*arguments), code, *words)


def test_no_nvidia_card(command):
    done = command("run", "-d", "0")
    assert_one_line(done, 5)


def test_file_that_is_no_session(command, tmp_path):
    for name, content in (("text", b"hello\n"), ("empty", b""), ("binary", bytes(range(256)) * 40)):
        path = tmp_path / name
        path.write_bytes(content)
        assert_one_line(command("result", str(path)), 2, name)
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    assert_one_line(command("result", str(tmp_path / "other.db")), 2, "other.db")
    assert_one_line(command("result", str(tmp_path)), 2)


def test_existing_out_is_kept_without_force(command, tmp_path):
    precious = tmp_path / "precious.heatsoak"
    precious.write_text("mine")
    done = command("run", "-d", "synthetic:rtx-5090", "--out", str(precious))
    assert_one_line(done, 2, "precious.heatsoak", "--force")
    forced = command("run", "-d", "synthetic:rtx-5090", "--out", str(precious), "--force")
    assert_one_line(forced, 2, "precious.heatsoak", "no session file")
    assert precious.read_text() == "mine"


def test_torch_is_not_needed_to_read(command, tmp_path):
    """With torch hidden, reading commands work and training ones say what to install."""
    hide = tmp_path / "hide"
    hide.mkdir()
    (hide / "sitecustomize.py").write_text(
        "from importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        "def without_torch(name, *rest):\n"
        "    hidden = name.partition('.')[0] in ('torch', 'lightning')\n"
        "    return None if hidden else find(name, *rest)\n"
        "PathFinder.find_spec = without_torch\n"
    )
    done = command("sessions", PYTHONPATH=str(hide))
    assert done.returncode == 0, done.stderr
    done = command("run", "-d", "cpu", PYTHONPATH=str(hide))
    assert_one_line(done, 2, "PyTorch", "heatsoak[train]")


@pytest.mark.parametrize(
    ("redirection", "code", "said"),
    [(">&-", 0, ""), (">/dev/full", 2, "the output cannot be written: No space left on device")],
)
def test_output_that_cannot_be_written_is_no_traceback(tmp_path, redirection, code, said):
    done = subprocess.run(
        ["sh", "-c", f"{HEATSOAK} workloads --json {redirection}"],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert done.stderr.strip().removeprefix("heatsoak: ") == said
