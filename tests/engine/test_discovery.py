"""Naming devices on a machine, without an NVIDIA driver (with one: test_nvidia_vendor)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from heatsoak.errors import UsageError
from heatsoak.telemetry.discovery import discover, open_devices


def ids(spec, **options):
    devices = open_devices(spec, **options)
    for device in devices:
        device.close()
    return [device.info.device_id for device in devices]


def test_the_host_cpu_is_always_there():
    assert discover()[-1].device_id == "cpu"
    assert ids("cpu") == ["cpu"]


def test_synthetic_cards_are_numbered_over_the_whole_list():
    devices = open_devices("synthetic:rtx-5090x2, cpu,synthetic:h100-sxm")
    assert [device.info.device_id for device in devices] == [
        "synthetic-0",
        "synthetic-1",
        "cpu",
        "synthetic-2",
    ]
    assert devices[-1].info.uuid == "SYNTHETIC-H100-SXM-2"
    for device in devices:
        device.close()


def test_the_seed_reaches_the_cards():
    def energy_j(seed):
        (device,) = open_devices("synthetic:rtx-5090", seed=seed)
        device.start_load(0.0)
        return device.read(100.0).energy_j

    assert energy_j(3) == energy_j(3) != energy_j(4)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("", "synthetic:rtx-5090"),
        ("cpu,", "has no name"),
        ("gpu", "unknown device 'gpu'"),
        ("-1", "-1 means no device at all"),
        ("0:x", "unknown device '0:x'"),
        ("cpu,cpu", "named twice"),
        ("synthetic:rtx5090", "did you mean rtx-5090"),
        ("synthetic:voodoo-2", "known: a100-pcie-80"),
        ("synthetic:rtx-5090+melt@3", "unknown word"),
    ],
)
def test_what_does_not_exist_is_refused_in_one_line_that_says_what_does(spec, words):
    with pytest.raises(UsageError, match=words) as caught:
        open_devices(spec)
    assert "\n" not in str(caught.value)


def test_without_a_driver_a_card_is_unavailable_and_the_cpu_is_best(tmp_path):
    # A library that cannot be loaded, also on a machine that has a driver.
    (tmp_path / "libnvidia-ml.so.1").write_text("no library")
    code = """
import json
from heatsoak.errors import DeviceUnavailableError
from heatsoak.telemetry.discovery import best_device, discover, nvidia_problem, open_devices
texts = []
for spec in ("0", "0:1", "all", "GPU-1234", "MIG-1234", "MIG-GPU-1234/1/0"):
    try:
        open_devices(spec)
    except DeviceUnavailableError as error:
        texts.append(str(error))
print(json.dumps([best_device(), [i.device_id for i in discover()], nvidia_problem(), texts]))
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    best, found, problem, texts = json.loads(done.stdout)
    assert (best, found) == ("cpu", ["cpu"])
    assert problem == "no NVIDIA driver: its library libnvidia-ml.so.1 was not found"
    assert len(texts) == 6
    assert all(problem in text and "\n" not in text for text in texts)


def test_importing_discovery_loads_no_driver_binding():
    code = (
        "import sys, heatsoak.telemetry.discovery; "
        "print([name for name in ('pynvml', 'psutil', 'yaml') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
