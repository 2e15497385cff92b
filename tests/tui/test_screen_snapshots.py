"""How the screens look, at the two sizes that matter. `--snapshot-update` after looking at each."""

from __future__ import annotations

from pathlib import Path

import pytest

from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample
from heatsoak_tui.app import HeatsoakApp
from heatsoak_tui.panels.result_table import ResultTable
from heatsoak_tui.screens.result import ResultScreen
from heatsoak_tui.screens.setup import SetupScreen
from heatsoak_tui.widgets.draft import Draft

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 34)], ids=["80x24", "120x34"])
SESSION = Path("20261130-2241-k3f9.heatsoak")


def app_on(run, quiet, folder, monkeypatch, **kwargs) -> HeatsoakApp:
    monkeypatch.chdir(folder)
    run.write(SESSION)
    app = HeatsoakApp(SESSION, control=lambda _: quiet, **kwargs)
    app.theme = "heatsoak-dark"
    return app


def when_shown(*keys: str):
    async def run_before(pilot) -> None:
        while not pilot.app.view.device_ids:
            await pilot.pause(0.01)
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        if isinstance(pilot.app.screen, ResultScreen):
            while pilot.app.screen.query_one(ResultTable).document is None:
                await pilot.pause(0.01)
        await pilot.pause(0.05)

    return run_before


@SIZES
def test_live_mid_run(size, written, quiet, tmp_path, monkeypatch, snap_compare):
    app = app_on(written(872), quiet, tmp_path, monkeypatch)
    assert snap_compare(app, terminal_size=size, run_before=when_shown())


@SIZES
def test_live_frozen(size, written, quiet, tmp_path, monkeypatch, snap_compare):
    app = app_on(written(1500, is_frozen=True), quiet, tmp_path, monkeypatch)
    assert snap_compare(app, terminal_size=size, run_before=when_shown("right"))


@SIZES
def test_result(size, written, quiet, tmp_path, monkeypatch, snap_compare):
    app = app_on(written(1500, is_frozen=True, end="steady"), quiet, tmp_path, monkeypatch)
    assert snap_compare(app, terminal_size=size, run_before=when_shown())


def test_live_all_cards(written, quiet, tmp_path, monkeypatch, snap_compare):
    app = app_on(written(872), quiet, tmp_path, monkeypatch)
    assert snap_compare(app, terminal_size=(120, 34), run_before=when_shown("a"))


def test_live_in_ascii_and_sixteen_colours(written, quiet, tmp_path, monkeypatch, snap_compare):
    app = app_on(written(872), quiet, tmp_path, monkeypatch, is_ascii=True)
    app.theme = "heatsoak-16"
    assert snap_compare(app, terminal_size=(80, 24), run_before=when_shown())


def test_live_on_a_light_terminal(written, quiet, tmp_path, monkeypatch, snap_compare):
    app = app_on(written(872), quiet, tmp_path, monkeypatch)
    app.theme = "heatsoak-light"
    assert snap_compare(app, terminal_size=(120, 34), run_before=when_shown())


def test_leaving_asks(written, quiet, tmp_path, monkeypatch, snap_compare):
    app = app_on(written(872), quiet, tmp_path, monkeypatch)
    assert snap_compare(app, terminal_size=(80, 24), run_before=when_shown("q"))


def test_help(written, quiet, tmp_path, monkeypatch, snap_compare):
    app = app_on(written(872), quiet, tmp_path, monkeypatch)
    assert snap_compare(app, terminal_size=(120, 34), run_before=when_shown("question_mark"))


def test_too_small(written, quiet, tmp_path, monkeypatch, snap_compare):
    app = app_on(written(872), quiet, tmp_path, monkeypatch)
    assert snap_compare(app, terminal_size=(20, 5), run_before=when_shown())


def drafted() -> Draft:
    card = DeviceInfo(
        "0", "GPU-1", "NVIDIA GeForce RTX 5090", "nvidia", "measured",
        memory_total_bytes=34190917632,
        power_limit_w=575.0, power_limit_default_w=575.0,
        temperature_limit_c=83.0, driver_version="580.159", pcie_gen_max=5, pcie_width_max=16,
    )  # fmt: skip
    second = DeviceInfo(
        "1", "GPU-2", "NVIDIA GeForce RTX 5090", "nvidia", "measured",
        memory_total_bytes=34190917632,
        power_limit_w=450.0, power_limit_default_w=575.0,
        driver_version="580.159",
    )  # fmt: skip
    cpu = DeviceInfo(
        "cpu", "cpu-aurora", "AMD Ryzen 9 9950X 16-Core Processor", "cpu", "measured", cores=32,
        memory_total_bytes=128 * 1024**3, missing={"power_w": "no powercap"},
    )  # fmt: skip
    samples = {
        "0": DeviceSample(0.0, "0", temperature_c=31.0, utilization_pct=0.0, pcie_width=16),
        "1": DeviceSample(0.0, "1", temperature_c=33.0, utilization_pct=0.0, pcie_width=8),
    }
    return Draft([card, second, cpu], samples, chosen={"0", "1"}, is_found=True)


@SIZES
@pytest.mark.parametrize("keys", [(), ("e", "right", "right")], ids=["cards", "plan"])
def test_setup(size, keys, fixed_offer, snap_compare):
    app = HeatsoakApp(setup=lambda: SetupScreen(drafted(), host="aurora"))
    app.theme = "heatsoak-dark"

    async def press(pilot) -> None:
        for key in keys:
            await pilot.press(key)
        await pilot.pause(0.05)

    assert snap_compare(app, terminal_size=size, run_before=press)


def test_setup_with_nothing_found(fixed_offer, snap_compare):
    draft = Draft(
        is_found=True, problem="no NVIDIA driver: its library libnvidia-ml.so.1 was not found"
    )
    app = HeatsoakApp(setup=lambda: SetupScreen(draft, host="aurora"))
    app.theme = "heatsoak-dark"
    assert snap_compare(app, terminal_size=(80, 24))


def test_setup_refused(fixed_offer, snap_compare):
    draft = drafted()
    draft.trouble = (
        "0 (NVIDIA GeForce RTX 5090) is in use by the run k3f9; `heatsoak stop k3f9` ends it"
    )
    app = HeatsoakApp(setup=lambda: SetupScreen(draft, host="aurora"))
    app.theme = "heatsoak-dark"
    assert snap_compare(app, terminal_size=(80, 24))
