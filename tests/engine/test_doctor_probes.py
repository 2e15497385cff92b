"""The child programs that measure: what they answer, and that nothing of them stays."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from doctor_machines import card, machine
from heatsoak.doctor import measure as measuring
from heatsoak.doctor.measure import measure
from heatsoak.launch.probe import ProbeError, run_probe
from heatsoak.telemetry.surroundings import CardUser

PROBES = {
    "answers": (
        "def probe(arguments):\n    print('a library greets')\n    return {'got': arguments}\n"
    ),
    "crashes": "def probe(_):\n    raise RuntimeError('no kernel image is available')\n",
    "rattles": "def probe(_):\n    while True: print('x' * 10000)\n",
    "hangs": (
        "import subprocess, sys, time\n"
        "def probe(_):\n"
        "    child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "    sys.stderr.write(f'{child.pid}\\n'); sys.stderr.flush()\n"
        "    open(sys.argv[2], 'w').write(str(child.pid))\n"
        "    time.sleep(600)\n"
    ),
    "sees": (
        "import os, sys\n"
        "def probe(_):\n"
        "    return {'safe': sys.flags.safe_path, 'cards': os.environ['CUDA_VISIBLE_DEVICES']}\n"
    ),
}


@pytest.fixture
def environ(tmp_path, monkeypatch):
    """An environment with probes of the test's own in place of the real ones."""
    package = tmp_path / "path" / "heatsoak_workloads" / "probes"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    real = Path(__file__).parents[2] / "workloads" / "heatsoak_workloads" / "probes"
    for name in ("__init__.py", "__main__.py"):
        (package / name).write_text((real / name).read_text())
    for name, code in PROBES.items():
        (package / f"{name}.py").write_text(code)
    return {**os.environ, "PYTHONPATH": str(tmp_path / "path"), "CUDA_VISIBLE_DEVICES": "GPU-1"}


def test_the_last_line_is_the_answer(environ):
    looks = []
    answer = run_probe(
        "answers", "a", "b", environ=environ, within_s=30, meanwhile=lambda: looks.append(1)
    )
    assert answer == {"got": ["a", "b"]}
    assert looks
    assert run_probe("sees", environ=environ, within_s=30) == {"safe": True, "cards": "GPU-1"}


def test_a_program_that_ends_without_an_answer_is_told_by_its_last_words(environ):
    with pytest.raises(ProbeError, match="no kernel image is available"):
        run_probe("crashes", environ=environ, within_s=30)
    with pytest.raises(ProbeError, match="usage: "):
        run_probe("nothing", environ=environ, within_s=30)
    with pytest.raises(ProbeError, match="without end"):
        run_probe("rattles", environ=environ, within_s=30)


@pytest.mark.parametrize("way", ["deadline", "stop"])
def test_nothing_stays_of_a_program_that_hangs(way, environ, tmp_path):
    noted, stop = tmp_path / "pid", threading.Event()

    def meanwhile() -> None:
        if way == "stop" and noted.exists() and noted.read_text():
            stop.set()

    within_s = 3.0 if way == "deadline" else 60.0
    words = "no answer within 3 s" if way == "deadline" else "ended before"
    with pytest.raises(ProbeError, match=words):
        run_probe(
            "hangs", str(noted), environ=environ, within_s=within_s, meanwhile=meanwhile, stop=stop
        )
    assert not Path(f"/proc/{noted.read_text()}").exists()


def test_this_python_is_told_and_the_disk_is_read(tmp_path):
    """The real programs, on a machine without a card: torch is imported once."""
    said = []
    made = measure(machine(card(0), storage={"folder": tmp_path}), said.append)
    assert made.stack.problem is None
    assert made.stack.architectures is not None
    assert (made.disk.read_bytes_per_s or 0) > 0 or made.disk.problem
    assert list(tmp_path.iterdir()) == []
    assert any("torch" in text for text in said)
    if made.stack.torch_cuda is None:
        assert made.cards[0].measures == card(0).measures  # nothing was tried


def test_the_file_that_is_read_has_no_name_that_could_stay(tmp_path):
    seen = []
    answer = run_probe(
        "disk",
        str(tmp_path),
        environ=os.environ,
        within_s=30,
        meanwhile=lambda: seen.append([path.name for path in tmp_path.iterdir()]),
    )
    assert answer["bytes"] if answer["problem"] is None else answer["problem"]
    assert seen
    assert not any(seen)


def test_a_card_that_cannot_compute_says_why(monkeypatch):
    """As far as it goes without a card: the program runs, and finds none."""
    monkeypatch.setattr(measuring, "_measure_disk", lambda *_: None)
    made = machine(card(0, measures=None))
    monkeypatch.setattr(measuring, "_ask_stack", lambda *_: made.stack)
    (found,) = measure(made).cards
    assert found.measures.problem.startswith("torch finds no card: ")


def test_copies_are_left_out_where_others_would_feel_them(monkeypatch):
    asked = []

    def run(name, *arguments, **_):
        asked.append((name, *arguments))
        return {"problem": None}

    monkeypatch.setattr(measuring, "_measure_disk", lambda *_: None)
    monkeypatch.setattr(measuring, "run_probe", run)
    other = CardUser(9_999_999, "compute", 10**9)
    screen = CardUser(9_999_998, "graphics", 10**8)
    made = machine(card(0), card(1, users=(other,)), card(2, users=(screen,)))
    monkeypatch.setattr(measuring, "_ask_stack", lambda *_: made.stack)
    said = []
    measure(made, said.append)
    assert asked == [("card",), ("card", "kernel"), ("card",)]
    assert "for others use it" in said[1]


def test_cards_that_are_soaked_or_refused_are_left_alone(monkeypatch):
    monkeypatch.setattr(measuring, "_measure_disk", lambda *_: None)
    monkeypatch.setattr(measuring, "_measure_card", lambda *_: pytest.fail("it was measured"))
    cards = [
        card(0, soaked_by=("k3f9",)), card(1), card(2, is_asked=False), card(3, problem="lost"),
    ]  # fmt: skip
    made = machine(*cards, refused={"1": "hidden"})
    monkeypatch.setattr(measuring, "_ask_stack", lambda *_: made.stack)
    assert measure(made).cards == tuple(cards)
