"""`heatsoak doctor` as a command, on emulated cards and drivers that do not start."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

CARD = "card 0 like rtx-5090\n"
START = {
    "no-driver": ("init DRIVER_NOT_LOADED\n", "kernel driver is not loaded"),
    "mismatch": ("init LIB_RM_VERSION_MISMATCH\n", "different versions: reboot"),
    "no-permission": ("init NO_PERMISSION\n", "cannot open /dev/nvidiactl"),
    "no-cards": ("", "it finds no card"),
    "too-old": ("without nvmlInitWithFlags nvmlInit_v2\n", "too old"),
}


def doctor(nvml, *arguments):
    return nvml.heatsoak("doctor", "--quick", *arguments)


@pytest.mark.parametrize("name", START)
def test_a_driver_that_does_not_start_is_a_sentence(name, nvml):
    scenario, words = START[name]
    nvml.tell(scenario)
    done = doctor(nvml)
    assert done.returncode == 0, done.stderr
    assert words in " ".join(done.stdout.split())
    assert "Traceback" not in done.stderr
    asked = doctor(nvml, "-d", "0", "--json")
    assert asked.returncode == 5, asked.stderr
    (error,) = [f for f in json.loads(asked.stdout)["findings"] if f["severity"] == "error"]
    assert error["device_id"] == "0"
    assert words in error["text"]
    assert asked.stderr == ""


def test_without_the_library_it_is_a_note(nvml):
    nvml.tell("")
    done = nvml.call("env", "-u", "LD_LIBRARY_PATH", *_command("--quick", "--json"))
    assert done.returncode == 0
    (said,) = [f for f in json.loads(done.stdout)["findings"] if f["id"] == "driver"]
    assert said["severity"] == "info"
    assert "libnvidia-ml.so.1 was not found" in said["text"]


def test_settings_of_cards_are_told_with_what_they_spoil(nvml):
    nvml.play("locked-clocks")
    done = doctor(nvml, "-d", "0,1,2", "--json")
    document = json.loads(done.stdout)
    assert document["schema"] == "heatsoak-doctor/1"
    by_id = {(f["id"], f["device_id"]): f for f in document["findings"]}
    assert by_id["clocks", "0"]["severity"] == "warning"
    assert "1200 MHz" in by_id["clocks", "0"]["text"]
    assert "400 W, 43% below the default of 700 W" in by_id["power-limit", "1"]["text"]
    assert by_id["persistence", "2"]["severity"] == "warning"
    assert by_id["persistence", "1"]["severity"] == "ok"
    assert by_id["power-limit", "0"]["severity"] == "ok"
    for finding in document["findings"]:
        if finding["severity"] == "warning":
            assert finding["spoils"]
    assert document["counts"]["warning"] == sum(
        f["severity"] == "warning" for f in document["findings"]
    )
    facts = {d["device_id"]: d for d in document["environment"]["devices"]}
    assert facts["1"]["power_limit_w"] == 400.0
    assert facts["0"]["application_clock_mhz"] == 1200.0


def test_who_is_on_a_card_is_told_or_said_to_be_unseen(nvml):
    nvml.play("hidden-processes")
    done = doctor(nvml, "-d", "0,1", "--json")
    users = {
        f["device_id"]: f["text"] for f in json.loads(done.stdout)["findings"]
        if f["id"] == "users"
    }  # fmt: skip
    assert "pid 3999999 with 25.4 GiB" in users["0"]
    assert "no process is listed" in users["1"]


def test_the_text_says_the_summary_first_and_ends_with_what_is_fine(nvml):
    nvml.tell(CARD + "card 0 nvmlDeviceGetCurrPcieLinkWidth 8\ndriver 572.16\ncuda 12080\n")
    done = doctor(nvml)
    first, *_, last = done.stdout.strip().split("\n\n")
    assert first.startswith("doctor: ")
    assert " warnings" in first
    assert last.startswith("fine     ")
    words = " ".join(done.stdout.split())
    assert "0: PCIe gen 5 x8 of gen 5 x16 at rest" in words
    assert "driver 572.16 is of the launch branch" in words
    assert all(len(line) <= 100 for line in done.stdout.splitlines())


def test_a_device_that_does_not_exist_is_wrong_usage(nvml):
    nvml.tell(CARD)
    done = doctor(nvml, "-d", "7")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("heatsoak: there is no device 7; there are: 0 (")
    assert done.stderr.count("\n") == 1


def test_synthetic_cards_and_the_cpu_can_be_asked_about(nvml):
    nvml.tell("")
    done = doctor(nvml, "-d", "cpu,synthetic:rtx-5090x2", "--json")
    assert done.returncode == 0
    devices = json.loads(done.stdout)["environment"]["devices"]
    assert [d["device_id"] for d in devices] == ["cpu", "synthetic-0", "synthetic-1"]


def _command(*arguments):
    return str(Path(sys.executable).with_name("heatsoak")), "doctor", *arguments
