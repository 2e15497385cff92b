"""What doctor found, on Setup and on a screen of its own."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import pytest

from doctor_machines import card, info, machine
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample
from heatsoak.telemetry.surroundings import CardUser
from heatsoak_tui.app import HeatsoakApp
from heatsoak_tui.panels.doctor_header import DoctorHeader
from heatsoak_tui.panels.doctor_list import DoctorList
from heatsoak_tui.panels.setup_doctor import SetupDoctor
from heatsoak_tui.screens.doctor import DoctorScreen
from heatsoak_tui.screens.fit import FitScreen
from heatsoak_tui.screens.setup import SetupScreen
from heatsoak_tui.widgets.canvas import to_cells
from heatsoak_tui.widgets.draft import Draft

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 34)], ids=["80x24", "120x34"])
USED = CardUser(9_999_999, "compute", 1_300_000_000)


def drafted(*, is_sound: bool = False) -> Draft:
    """Two cards of which the second is wanting, and a third that is in use."""
    cpu = DeviceInfo(
        "cpu", "cpu-aurora", "AMD Ryzen 9 9950X 16-Core Processor", "cpu", "measured", cores=32,
        memory_total_bytes=128 * 1024**3,
    )  # fmt: skip
    first, second = info(0), info(1) if is_sound else info(1, power_limit_w=450.0)
    third = info(2, name="NVIDIA RTX PRO 5000 72GB", ecc_is_on=False)
    samples = {str(n): DeviceSample(0.0, str(n), temperature_c=31.0 + n) for n in range(3)}
    seen = machine(
        card(0),
        card(1) if is_sound else card(1, power_limit_w=450.0, reading={"pcie_width": 8},
                                      measures=None),
        card(2, name=third.name, ecc_is_on=False, users=(USED,), is_asked=False),
        host={} if is_sound else {"governors": ("powersave",)},
    )  # fmt: skip
    return Draft(
        [first, second, third, cpu], samples, chosen={"0", "1"}, is_found=True, machine=seen
    )


def app_with(draft: Draft) -> HeatsoakApp:
    app = HeatsoakApp(setup=lambda: SetupScreen(draft, host="aurora"))
    app.theme = "heatsoak-dark"
    return app


def press(*keys: str):
    async def run_before(pilot) -> None:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        await pilot.pause(0.05)

    return run_before


@SIZES
def test_warnings_in_place(size, fixed_offer, snap_compare):
    assert snap_compare(app_with(drafted()), terminal_size=size, run_before=press())


@SIZES
def test_the_whole_list(size, fixed_offer, snap_compare):
    assert snap_compare(app_with(drafted()), terminal_size=size, run_before=press("d"))


def test_the_end_of_the_list(fixed_offer, snap_compare):
    keys = press("d", *["pagedown"] * 6)
    assert snap_compare(app_with(drafted()), terminal_size=(80, 24), run_before=keys)


def test_a_sound_machine(fixed_offer, snap_compare):
    draft = drafted(is_sound=True)
    assert snap_compare(app_with(draft), terminal_size=(120, 34), run_before=press())


def test_every_doctor_panel_at_every_size(fixed_offer):
    for draft in (drafted(), Draft(), drafted(is_sound=True)):
        panels = [SetupDoctor(draft), DoctorList(draft), DoctorHeader(draft, "aurora")]
        for width, height in [(0, 0), (1, 1), (13, 2), (56, 14), (80, 1), (120, 34), (400, 100)]:
            for panel in panels:
                lines = panel.draw(width, height)
                for line in lines[:height]:
                    assert len(to_cells(line, width)) == width


def text_of(canvas) -> str:
    return "\n".join("".join(char for char, _ in row) for row in canvas._cells)


async def until(pilot, condition) -> None:
    for _ in range(3000):
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError("it did not come about")


async def test_choosing_another_card_changes_the_warnings(fixed_offer):
    draft = drafted()
    async with app_with(draft).run_test(size=(120, 34)) as pilot:
        panel = pilot.app.screen.query_one(SetupDoctor)
        await until(pilot, lambda: "power limit is 450 W" in text_of(panel))
        assert "other programs" not in text_of(panel)
        await pilot.press("down", "space", "down", "space")  # not 1 any more, but 2
        await until(pilot, lambda: "other programs compute on it" in text_of(panel))
        assert "power limit is 450 W" not in text_of(panel)


async def test_measuring_tells_what_it_does_and_shows_what_came_of_it(fixed_offer, monkeypatch):
    draft, told, go = drafted(is_sound=True), Event(), Event()

    def measure(machine, say, stop):
        assert [c.info.device_id for c in machine.asked_boards] == ["0", "1"]
        say("card 0: a first kernel")
        told.set()
        assert go.wait(10)
        return replace(machine, stack=replace(machine.stack, problem="libcudart is missing"))

    monkeypatch.setattr("heatsoak_tui.screens.doctor.measure", measure)
    async with app_with(draft).run_test(size=(120, 34)) as pilot:
        await pilot.press("d")
        assert isinstance(pilot.app.screen, DoctorScreen)
        header = pilot.app.screen.query_one(DoctorHeader)
        await until(pilot, lambda: "Fit to measure" in text_of(header))
        await pilot.press("m", "m")  # the second one changes nothing
        await until(pilot, lambda: "card 0: a first kernel" in text_of(header))
        go.set()
        await until(pilot, lambda: "Cannot measure" in text_of(header))
        await pilot.press("escape")
        panel = pilot.app.screen.query_one(SetupDoctor)
        await until(pilot, lambda: "libcudart is missing" in text_of(panel))
        assert "doctor: 1 error" in text_of(pilot.app.screen.query_one("#header"))


async def test_leaving_ends_what_is_measured(fixed_offer, monkeypatch):
    draft, ended = drafted(), Event()
    before = draft.machine

    def measure(machine, say, stop):
        say("card 0: a first kernel")
        assert stop.wait(10)
        ended.set()
        return replace(machine, cards=())

    monkeypatch.setattr("heatsoak_tui.screens.doctor.measure", measure)
    async with app_with(draft).run_test(size=(80, 24)) as pilot:
        await pilot.press("d", "m")
        await until(pilot, lambda: draft.doctor_is_busy.startswith("card 0"))
        await pilot.press("q")
        await until(pilot, ended.is_set)
        assert isinstance(pilot.app.screen, SetupScreen)
        await pilot.pause(0.05)
    assert draft.machine is before
    assert draft.doctor_is_busy == ""


async def test_setup_looks_by_itself(fixed_offer):
    """The real thing: this very machine."""
    app = HeatsoakApp(setup=lambda: SetupScreen(host="aurora"))
    async with app.run_test(size=(120, 40)) as pilot:
        draft = app.screen.draft
        await until(pilot, lambda: draft.machine is not None)
        panel = app.screen.query_one(SetupDoctor)
        await until(pilot, lambda: "DOCTOR" in text_of(panel) and "fine" in text_of(panel))
        assert [card.info.device_id for card in draft.machine.others] == ["cpu"]


async def test_the_planner_opens_over_setup(fixed_offer):
    async with app_with(drafted()).run_test(size=(120, 34)) as pilot:
        await pilot.press("f")
        assert isinstance(pilot.app.screen, FitScreen)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, SetupScreen)
