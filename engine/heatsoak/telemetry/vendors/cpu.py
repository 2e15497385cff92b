"""The host CPU: load and memory through psutil, power, temperature and clock from sysfs.

Virtual machines often show neither powercap, hwmon nor cpufreq: then those readings are absent,
each with its reason.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample

DEVICE_ID = "cpu"
_MAX_CLOCKS = 16
"""Cores whose clock is read: each read interrupts its core, so a big host is sampled."""
_TEMPERATURE_DRIVERS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
_PACKAGE_LABELS = re.compile(r"Package id \d+|Tdie|Tctl")
_TEMPERATURES_C = (-40.0, 126.0)
_NOT_OF_A_CPU = (
    "mem_clock_mhz",
    "fan_pct",
    "power_limit_w",
    "throttle_reasons",
    "pcie_gen",
    "pcie_width",
    "pstate",
    "power_instant_w",
    "memory_temperature_c",
    "temperature_margin_c",
)


def discover() -> DeviceInfo:
    """The host CPU."""
    device = CpuDevice()
    device.close()
    return device.info


class CpuDevice:
    """The host CPU; all its cores and packages are one device."""

    def __init__(self, root: Path = Path("/")) -> None:
        """Find and open once the files that are read every second.

        Args:
            root: where `sys` and `proc` are; another one in tests.
        """
        import psutil

        self._psutil = psutil
        self._missing = dict.fromkeys(_NOT_OF_A_CPU, "not a reading of a CPU")
        self._energy = [_EnergyCounter(path) for path in self._find_energy(root)]
        self._temperatures = self._find_temperatures(root)
        self._clocks = self._find_clocks(root)
        self._energy_j = 0.0
        self._last_energy_j: float | None = None
        self._last_t_s = 0.0
        self._last_busy: tuple[float, float] | None = None
        self._info = DeviceInfo(
            device_id=DEVICE_ID,
            uuid=f"cpu-{socket.gethostname()}",
            name=_model_name(root),
            kind="cpu",
            provenance="measured",
            memory_total_bytes=psutil.virtual_memory().total,
            cores=os.cpu_count(),
            power_limit_w=_power_limit_w([counter.folder for counter in self._energy]),
            temperature_limit_c=_lowest_limit_c(root),
            sm_clock_max_mhz=_highest_clock_mhz(root),
            missing=self._missing,
        )

    @property
    def info(self) -> DeviceInfo:
        """What the CPU is."""
        return self._info

    def read(self, t_s: float) -> DeviceSample:
        """One reading; power and load are means since the reading before, so the first has none."""
        energy_j = self._read_energy_j()
        power_w = None
        if energy_j is not None and self._last_energy_j is not None and t_s > self._last_t_s:
            power_w = (energy_j - self._last_energy_j) / (t_s - self._last_t_s)
        self._last_energy_j, self._last_t_s = energy_j, t_s
        temperatures_c = [
            value / 1000.0
            for value in (file.read() for file in self._temperatures)
            if value is not None and _TEMPERATURES_C[0] <= value / 1000.0 <= _TEMPERATURES_C[1]
        ]
        clocks_mhz = [
            value / 1000.0 for value in (file.read() for file in self._clocks) if value is not None
        ]
        return DeviceSample(
            t_s=t_s,
            device_id=DEVICE_ID,
            power_w=power_w,
            energy_j=energy_j,
            temperature_c=max(temperatures_c, default=None),
            sm_clock_mhz=sum(clocks_mhz) / len(clocks_mhz) if clocks_mhz else None,
            utilization_pct=self._read_load_pct(),
            memory_used_bytes=self._psutil.virtual_memory().used,
        )

    def health(self) -> None:
        """A CPU counts no defects that could be read here."""

    def close(self) -> None:
        """Close the files."""
        for counter in self._energy:
            counter.close()
        for file in (*self._temperatures, *self._clocks):
            file.close()

    def _read_energy_j(self) -> float | None:
        if not self._energy:
            return None
        totals_j = [counter.total_j() for counter in self._energy]
        known_j = [total_j for total_j in totals_j if total_j is not None]
        return sum(known_j) if len(known_j) == len(totals_j) else None

    def _read_load_pct(self) -> float | None:
        times = self._psutil.cpu_times()
        # Guest time is part of user time on Linux, where it would count twice.
        total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        busy = total - times.idle - getattr(times, "iowait", 0.0)
        last, self._last_busy = self._last_busy, (busy, total)
        if last is None or total <= last[1]:
            return None
        return max(0.0, min(100.0, 100.0 * (busy - last[0]) / (total - last[1])))

    def _find_energy(self, root: Path) -> list[Path]:
        """Package domains of powercap: `intel-rapl:0`, used for AMD as well; not its parts."""
        folders = [
            folder
            for folder in sorted((root / "sys/class/powercap").glob("intel-rapl:*"))
            if re.fullmatch(r"intel-rapl:\d+", folder.name)
            and (_text(folder / "name") or "").startswith("package")
        ]
        reason = None
        if not folders:
            reason = "the system shows no package energy counter (powercap)"
        elif not all(os.access(folder / "energy_uj", os.R_OK) for folder in folders):
            folders, reason = [], "the energy counter (powercap) is readable by root only"
        if reason is not None:
            self._missing["power_w"] = self._missing["energy_j"] = reason
        return folders

    def _find_temperatures(self, root: Path) -> list[_NumberFile]:
        files = []
        for folder in _hwmon_folders(root):
            inputs = sorted(folder.glob("temp*_input"))
            labels = {path: _text(path.with_name(_label(path.name))) or "" for path in inputs}
            package = [path for path in inputs if _PACKAGE_LABELS.fullmatch(labels[path])]
            files += [_NumberFile(path) for path in package or inputs]
        files = _readable(files)
        if not files:
            self._missing["temperature_c"] = "the system shows no CPU temperature sensor (hwmon)"
        return files

    def _find_clocks(self, root: Path) -> list[_NumberFile]:
        paths = sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq"))
        step = max(1, -(-len(paths) // _MAX_CLOCKS))
        files = _readable([_NumberFile(path) for path in paths[::step]])
        if not files:
            self._missing["sm_clock_mhz"] = "the system shows no core frequency (cpufreq)"
        return files


class _NumberFile:
    """A sysfs file that holds one integer, kept open: reading it again is one system call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._descriptor = None

    def read(self) -> int | None:
        """The number, or None when it cannot be read this time."""
        if self._descriptor is None:
            return None
        try:
            return int(os.pread(self._descriptor, 64, 0))
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class _EnergyCounter:
    """One package's energy since it was opened, past the wraps of its counter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = _NumberFile(folder / "energy_uj")
        range_text = _text(folder / "max_energy_range_uj")
        self._range_uj = int(range_text) if range_text and range_text.isdigit() else None
        self._last_uj: int | None = self._file.read()
        self._total_uj = 0

    def total_j(self) -> float | None:
        """Joules since this counter was opened; None when it cannot be read."""
        now_uj = self._file.read()
        if now_uj is None:
            return None
        if self._last_uj is not None:
            step_uj = now_uj - self._last_uj
            if step_uj < 0:
                # Wrapped; without a known range the stretch of the wrap is lost, not guessed.
                step_uj = step_uj + self._range_uj if self._range_uj else 0
            self._total_uj += max(0, step_uj)
        self._last_uj = now_uj
        return self._total_uj / 1e6

    def close(self) -> None:
        self._file.close()


def _readable(files: list[_NumberFile]) -> list[_NumberFile]:
    kept = []
    for file in files:
        if file.read() is None:
            file.close()
        else:
            kept.append(file)
    return kept


def _hwmon_folders(root: Path) -> list[Path]:
    folders = sorted((root / "sys/class/hwmon").glob("hwmon*"))
    return [folder for folder in folders if _text(folder / "name") in _TEMPERATURE_DRIVERS]


def _label(name: str) -> str:
    return name.replace("_input", "_label")


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _integer(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


def _model_name(root: Path) -> str:
    for line in (_text(root / "proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model") and value.strip():
            return value.strip()
    return "CPU of unknown name"


def _power_limit_w(folders: list[Path]) -> float | None:
    """Sum of the packages' long-term limits."""
    limits_uw = [_integer(folder / "constraint_0_power_limit_uw") for folder in folders]
    known_uw = [limit_uw for limit_uw in limits_uw if limit_uw is not None]
    return sum(known_uw) / 1e6 if known_uw and len(known_uw) == len(folders) else None


def _lowest_limit_c(root: Path) -> float | None:
    crits = [
        _integer(path) for folder in _hwmon_folders(root) for path in folder.glob("temp*_crit")
    ]
    limits_c = [crit / 1000.0 for crit in crits if crit is not None]
    return min((limit_c for limit_c in limits_c if 50.0 <= limit_c <= 126.0), default=None)


def _highest_clock_mhz(root: Path) -> float | None:
    paths = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/cpuinfo_max_freq")
    values = [_integer(path) for path in paths]
    return max((value / 1000.0 for value in values if value is not None), default=None)
