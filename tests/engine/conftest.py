"""Session files for the tests of the session package."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from heatsoak.recipe import Recipe
from heatsoak.session.rows import Batch, EventRow, JobRow, LogRow, PhaseRow, StepsRow
from heatsoak.session.store import SessionWriter
from heatsoak.steady_state.verdict import Bound, Verdict
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample

NOBODY = 65534


class Sessions:
    """What makes sessions and their batches, one a second."""

    RECIPE = Recipe("synthetic", "1B", 4096, 4, 1, "bf16", "flash", False, False, "adamw")

    def meta(self, **more):
        meta = {
            "id": "k3f9", "created_utc": "2026-11-30T22:41:07Z", "host": "aurora",
            "protocol": "standard", "heatsoak_version": "0.1.0", "speed": "1", "seed": "7",
            "provenance": "measured", "state": "recording",
        }  # fmt: skip
        return meta | more

    def devices(self, count=1):
        return tuple(
            DeviceInfo(
                str(n), f"GPU-{n}", "NVIDIA GeForce RTX 5090", "nvidia", "measured",
                card="rtx-5090", index=n, memory_total_bytes=34_190_917_632, power_limit_w=575.0,
                missing={"fan_pct": "no fan"},
            )
            for n in range(count)
        )  # fmt: skip

    def jobs(self, devices):
        return tuple(
            JobRow(f"job-{d.device_id}", "synthetic", 1, self.RECIPE, "synthetic", "tokens",
                   (d.device_id,))
            for d in devices
        )  # fmt: skip

    def create(self, path, count=1, *, force=False, **meta):
        devices = self.devices(count)
        return SessionWriter.create(
            path, meta=self.meta(**meta), devices=devices, jobs=self.jobs(devices), force=force
        )

    def sample(self, t_s, device_id="0"):
        return DeviceSample(
            t_s, device_id, power_w=450.0 + t_s % 7 / 10, energy_j=450.0 * t_s,
            temperature_c=60.0 + t_s % 3, sm_clock_mhz=2400.0, mem_clock_mhz=14001.0,
            utilization_pct=99.0, memory_used_bytes=20_000_000_000, fan_pct=None,
            power_limit_w=575.0, throttle_reasons=("sw_power_cap",) if t_s % 2 else (),
            pcie_gen=5, pcie_width=16, pstate=1,
        )  # fmt: skip

    def verdict(self, t_s, device_id="0", state="settling", **more):
        bound = Bound("power", 0.31, 0.5, "%", is_ok=True)
        return Verdict(t_s, device_id, state, ("headroom-unknown", "disturbed"), "waits for power",
                       ("rate", "power"), (bound,), **more)  # fmt: skip

    def second(self, t, count=1):
        """Everything that comes within one second."""
        t_s = float(t)
        ids = [str(n) for n in range(count)]
        return Batch(
            {},
            samples=tuple(self.sample(t_s, i) for i in ids),
            steps=tuple(StepsRow(t_s, f"job-{i}", 9400.0 * t_s, t, 4.0) for i in ids),
            phases=tuple(PhaseRow(t_s, f"job-{i}", "train") for i in ids if t == 0),
            events=(EventRow(t_s, "mark", f"mark {t}"),) if t % 10 == 0 else (),
            verdicts=tuple(self.verdict(t_s, i) for i in ids) if t % 10 == 0 else (),
            logs=tuple(LogRow(t_s, f"job-{i}", "stdout", f"line {t}") for i in ids),
        )

    def rows(self, path, query, *values):
        connection = sqlite3.connect(path)
        try:
            return connection.execute(query, values).fetchall()
        finally:
            connection.close()

    WRITE = (
        "import sys\n"
        "from pathlib import Path\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from conftest import Sessions\n"
        "sessions = Sessions()\n"
        "writer = sessions.create(Path(sys.argv[1]), 2)\n"
        "for t in range(100_000):\n"
        "    writer.write(sessions.second(t, 2))\n"
        "    print(t, flush=True)\n"
    )
    """Writes until it is killed, and says which seconds are committed."""

    def run(self, script, path):
        """A script in a process of its own, given a path and where this file lies."""
        command = [sys.executable, "-c", script, str(path), str(Path(__file__).parent)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    def crash(self, path, seconds):
        """Kill a writer after so many acknowledged seconds; how many it acknowledged in all."""
        command = [sys.executable, "-c", self.WRITE, str(path), str(Path(__file__).parent)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            for _ in range(seconds):
                child.stdout.readline()
            child.kill()
            rest = child.stdout.read().split()
        return int(rest[-1]) + 1 if rest else seconds

    def files(self, folder):
        return sorted(path.name for path in folder.iterdir())

    def pragma(self, path, name):
        return self.rows(path, f"PRAGMA {name}")[0][0]


@pytest.fixture(scope="session")
def sessions():
    return Sessions()


@pytest.fixture
def as_nobody():
    """A folder anybody may use, and a context in which permissions count."""

    @contextmanager
    def change():
        if os.geteuid() != 0:
            yield
            return
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)

    return change


@pytest.fixture
def open_folder(monkeypatch):
    """A folder outside the tests' own, which only their user may enter; settings are there too."""
    with tempfile.TemporaryDirectory(prefix="heatsoak-test-") as folder:
        where = Path(folder)
        where.chmod(0o755)
        monkeypatch.setenv("XDG_CONFIG_HOME", folder)
        yield where
        where.chmod(0o755)


@pytest.fixture
def small_disk():
    """small_disk(kib) -> Path: a file system of its own, of so many KiB."""
    mounted = []

    def make(kib):
        if os.geteuid() != 0:
            pytest.skip("only root may mount")
        # Not in pytest's own folder, which another run may clear.
        where = Path(tempfile.mkdtemp(prefix="heatsoak-disk-"))
        command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(where)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            where.rmdir()
            pytest.skip(f"cannot mount: {done.stderr.strip()}")
        mounted.append(where)
        return where

    yield make
    for where in mounted:
        subprocess.run(["umount", "--lazy", str(where)], check=True)
        where.rmdir()
