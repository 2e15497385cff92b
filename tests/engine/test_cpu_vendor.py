"""The host CPU on made-up sysfs trees, and on the machine at hand."""

from __future__ import annotations

import os
import socket
import time

import pytest

from heatsoak.telemetry.vendors.cpu import CpuDevice


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{value}\n")


@pytest.fixture
def tree(tmp_path):
    """A host of two packages, four cores, and a sensor of something else."""
    power = tmp_path / "sys/class/powercap"
    for number in range(2):
        folder = power / f"intel-rapl:{number}"
        write(folder / "name", f"package-{number}")
        write(folder / "energy_uj", 1_000_000 * (number + 1))
        write(folder / "max_energy_range_uj", 10_000_000)
        write(folder / "constraint_0_power_limit_uw", 125_000_000)
        write(power / f"intel-rapl:{number}:0" / "name", "core")
        write(power / f"intel-rapl:{number}:0" / "energy_uj", 77)
    write(power / "intel-rapl:2/name", "psys")
    write(power / "intel-rapl:2/energy_uj", 99)
    write(power / "intel-rapl-mmio:0/name", "package-0")
    hwmon = tmp_path / "sys/class/hwmon"
    write(hwmon / "hwmon0/name", "nvme")
    write(hwmon / "hwmon0/temp1_input", 88_000)
    write(hwmon / "hwmon1/name", "coretemp")
    write(hwmon / "hwmon1/temp1_input", 61_500)
    write(hwmon / "hwmon1/temp1_label", "Package id 0")
    write(hwmon / "hwmon1/temp1_crit", 100_000)
    write(hwmon / "hwmon1/temp2_input", 70_000)
    write(hwmon / "hwmon1/temp2_label", "Core 0")
    write(hwmon / "hwmon2/name", "coretemp")
    write(hwmon / "hwmon2/temp1_input", 64_000)
    write(hwmon / "hwmon2/temp1_label", "Package id 1")
    for core, khz in enumerate((3_000_000, 3_100_000, 2_900_000, 3_400_000)):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{core}/cpufreq"
        write(folder / "scaling_cur_freq", khz)
        write(folder / "cpuinfo_max_freq", 5_200_000)
    write(tmp_path / "proc/cpuinfo", "processor\t: 0\nmodel name\t: Testium 9000\n")
    return tmp_path


@pytest.fixture
def device(tree):
    device = CpuDevice(tree)
    yield device
    device.close()


def test_it_is_described(device):
    info = device.info
    assert (info.device_id, info.kind, info.provenance) == ("cpu", "cpu", "measured")
    assert info.uuid == f"cpu-{socket.gethostname()}"
    assert info.name == "Testium 9000"
    assert info.cores == os.cpu_count()
    assert info.power_limit_w == 250
    assert info.temperature_limit_c == 100
    assert info.sm_clock_max_mhz == 5200
    assert not {"power_w", "energy_j", "temperature_c", "sm_clock_mhz"} & set(info.missing)
    assert "fan_pct" in info.missing


def test_packages_are_summed_and_power_is_energy_over_time(device, tree):
    first = device.read(10.0)
    assert first.power_w is None
    assert first.energy_j == 0
    write(tree / "sys/class/powercap/intel-rapl:0/energy_uj", 1_000_000 + 80_000)
    write(tree / "sys/class/powercap/intel-rapl:1/energy_uj", 2_000_000 + 40_000)
    second = device.read(12.0)
    assert second.energy_j == pytest.approx(0.12)
    assert second.power_w == pytest.approx(0.06)


def test_a_counter_that_wraps_goes_on(device, tree):
    path = tree / "sys/class/powercap/intel-rapl:0/energy_uj"
    write(path, 9_900_000)
    before = device.read(1.0).energy_j
    write(path, 200_000)
    after = device.read(2.0)
    assert after.energy_j - before == pytest.approx(0.3)
    assert after.power_w == pytest.approx(0.3)


def test_temperature_is_of_the_hottest_package_and_clock_the_mean(device, tree):
    sample = device.read(1.0)
    assert sample.temperature_c == 64.0
    assert sample.sm_clock_mhz == 3100.0
    write(tree / "sys/class/hwmon/hwmon1/temp1_input", 81_000)
    assert device.read(2.0).temperature_c == 81.0
    write(tree / "sys/class/hwmon/hwmon1/temp1_input", 127_000)
    assert device.read(3.0).temperature_c == 64.0


def test_a_sensor_that_fails_is_none_and_comes_back(device, tree):
    write(tree / "sys/class/powercap/intel-rapl:1/energy_uj", "")
    assert device.read(1.0).energy_j is None
    write(tree / "sys/class/powercap/intel-rapl:1/energy_uj", 2_500_000)
    assert device.read(2.0).energy_j == pytest.approx(0.5)


def test_a_virtual_machine_shows_nothing_and_says_why(tmp_path):
    device = CpuDevice(tmp_path)
    sample = device.read(1.0)
    device.close()
    for name in ("power_w", "energy_j", "temperature_c", "sm_clock_mhz"):
        assert getattr(sample, name) is None
        assert "the system shows no" in device.info.missing[name]
    assert sample.memory_used_bytes > 0
    assert device.info.name == "CPU of unknown name"


def test_a_counter_that_only_root_may_read_says_so(tree, monkeypatch):
    # Root reads everything, so the answer of the system is given in its place.
    monkeypatch.setattr(os, "access", lambda path, mode: "energy_uj" not in str(path))
    device = CpuDevice(tree)
    device.close()
    assert "root" in device.info.missing["power_w"]
    assert device.read(1.0).power_w is None


def test_load_is_of_the_time_between_two_readings():
    device = CpuDevice()
    device.read(0.0)
    end = time.monotonic() + 20
    load_pct = None
    t_s = 1.0
    while load_pct is None or load_pct < 20:
        assert time.monotonic() < end, load_pct
        busy_until = time.monotonic() + 0.2
        while time.monotonic() < busy_until:
            pass
        load_pct = device.read(t_s).utilization_pct
        t_s += 1.0
    assert 20 <= load_pct <= 100
    device.close()


def test_a_reading_is_cheap(device):
    device.read(0.0)
    began = time.process_time()
    for k in range(200):
        device.read(1.0 + k)
    assert (time.process_time() - began) / 200 < 0.001
