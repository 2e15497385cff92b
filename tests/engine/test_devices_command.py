"""`heatsoak devices` where the NVIDIA driver is not there or not well: a sentence, no traceback."""

from __future__ import annotations

import json

import pytest

CASES = {
    "no library": (None, "no NVIDIA driver"),
    "library without driver": ("init DRIVER_NOT_LOADED\n", "kernel driver is not loaded"),
    "version mismatch": ("init LIB_RM_VERSION_MISMATCH\n", "reboot"),
    "no permission": ("init NO_PERMISSION\n", "no permission"),
    "no card": ("driver 580.95.05\n", "finds no card"),
    "library too old": ("without nvmlInitWithFlags\n", "too old"),
    "container cut off": ("init UNKNOWN\n", "unknown error"),
}
OTHER_CODES = [1, 2, 3, 6, 7, 8, 10, 11, 14, 15, 16, 17, 19, 20, 27, 28]


@pytest.fixture
def driver(nvml, tmp_path, monkeypatch):
    """Tells the emulated driver what is wrong with it; None: there is no library."""

    def tell(scenario):
        nvml.tell(scenario or "")
        if scenario is None:
            # A file that is no library stands for none, whatever this machine has installed.
            (tmp_path / "nothing").mkdir()
            (tmp_path / "nothing" / "libnvidia-ml.so.1").touch()
            monkeypatch.setattr(nvml, "libraries", Nothing(tmp_path / "nothing"))
        return nvml

    return tell


class Nothing:
    def __init__(self, folder):
        self._folder = folder

    def library(self, hidden):
        return self._folder


@pytest.mark.parametrize("case", CASES)
def test_the_list_is_told_with_one_sentence_on_what_is_missing(driver, case):
    scenario, words = CASES[case]
    nvml = driver(scenario)
    done = nvml.heatsoak("devices")
    assert done.returncode == 0
    assert words in done.stdout
    assert "cpu" in done.stdout
    assert done.stderr == ""
    assert sum(words in line for line in done.stdout.splitlines()) == 1


@pytest.mark.parametrize("case", CASES)
def test_a_run_on_a_card_is_refused_with_the_same_sentence(driver, case):
    scenario, words = CASES[case]
    nvml = driver(scenario)
    done = nvml.heatsoak("run", "-d", "0", "--headless", "--protocol", "smoke")
    assert done.returncode == 5
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert words in done.stderr


def test_every_other_code_of_a_start_is_a_sentence_too(nvml):
    """In one process, since the command is the same: only the words of the problem differ."""
    found = nvml.run(
        f"""
import contextlib, io, json, os
from heatsoak_tui.cli import main
path = os.environ["NVML_EMULATOR_SCENARIO"]
answers = {{}}
for code in {OTHER_CODES}:
    with open(path + ".new", "w") as file:
        file.write(f"init {{code}}\\n")
    os.replace(path + ".new", path)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exit_code = main(["devices", "--json"])
    answers[code] = [exit_code, json.loads(out.getvalue())]
print(json.dumps(answers))
"""
    )
    assert [int(code) for code in found] == OTHER_CODES
    assert len({document["nvidia_problem"] for _, document in found.values()}) == len(OTHER_CODES)
    for exit_code, document in found.values():
        assert exit_code == 0
        assert "the NVIDIA driver does not start: " in document["nvidia_problem"]
        assert "\n" not in document["nvidia_problem"]
        assert [device["kind"] for device in document["devices"]] == ["cpu"]


def test_a_card_that_cannot_be_read_is_told_beside_those_that_can(nvml):
    nvml.play("one-card", "card 1 like rtx-5090", "fail 1 * GPU_IS_LOST")
    done = nvml.heatsoak("devices", "--json")
    assert done.returncode == 0
    ids = [device["device_id"] for device in json.loads(done.stdout)["devices"]]
    assert ids == ["0", "cpu"]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("case", CASES)
def test_the_doctor_says_the_same_sentence_and_looks_at_the_rest(driver, case):
    scenario, words = CASES[case]
    done = driver(scenario).heatsoak("doctor", "--quick", "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    findings = json.loads(done.stdout)["findings"]
    told = [finding for finding in findings if words in f"{finding['title']} {finding['text']}"]
    assert len(told) == 1
    assert told[0]["severity"] == ("info" if scenario is None else "warning")
    assert any(finding["device_id"] == "cpu" for finding in findings)


def test_the_doctor_is_asked_for_a_card_that_cannot_be_used(driver):
    done = driver(CASES["library without driver"][0]).heatsoak("doctor", "--quick", "-d", "0")
    assert done.returncode == 5
    assert CASES["library without driver"][1] in " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in done.stderr
