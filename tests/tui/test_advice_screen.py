"""The advice screen: keys, what it refuses, every size; and how it looks at the two that matter."""

from __future__ import annotations

import threading

import pytest

from heatsoak.profiles.money import Input, Money
from heatsoak.session.advice import Wishes, advise_sessions
from heatsoak_tui.app import HeatsoakApp
from heatsoak_tui.panels.advice_detail import AdviceDetail
from heatsoak_tui.panels.advice_header import AdviceHeader
from heatsoak_tui.panels.advice_table import AdviceTable
from heatsoak_tui.screens.advice import AdviceScreen
from heatsoak_tui.widgets.advice_canvas import AdviceView
from heatsoak_tui.widgets.canvas import Canvas, to_cells, width_of

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 34)], ids=["80x24", "120x34"])
EVERY_SIZE = [
    (0, 0),
    (1, 1),
    (20, 5),
    (56, 14),
    (80, 24),
    (109, 20),
    (110, 20),
    (120, 34),
    (200, 60),
]
PRICES = Money(
    (
        Input("invoice", 2899.0, "yours", "USD", "2026-10-12", "rtx-5090"),
        Input("invoice", 6500.0, "yours", "USD", "2026-10-12", "rtx-pro-5000-72"),
        Input("kwh_price", 0.187, "yours", "USD", "2026-10-12"),
        Input("pue", 1.0, "yours"),
        Input("horizon_years", 3.0, "yours"),
        Input("utilisation_frac", 0.5, "yours"),
    )
)


@pytest.fixture
def paths(write_session, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return [
        write_session(tmp_path, "a", "rtx-5090", 9402.0, power_w=561.0),
        write_session(tmp_path, "b", "rtx-pro-5000-72", 8100.0, power_w=299.0),
    ]


class Shell(HeatsoakApp):
    """The app with nothing but the screen under test."""

    def __init__(self, screen: AdviceScreen, **more) -> None:
        super().__init__(**more)
        self.theme = "heatsoak-dark"
        self._advice = screen

    def on_mount(self, event) -> None:
        event.prevent_default()  # The app would open Setup.
        self.push_screen(self._advice)


async def until_told(pilot) -> AdviceScreen:
    view = pilot.app._advice.view
    await until(pilot, lambda: view.report is not None or view.problem)
    await pilot.pause()
    return pilot.app._advice


def text_of(screen) -> str:
    return "\n".join(
        "".join(char for char, _ in row).rstrip()
        for canvas in screen.query(Canvas)
        if canvas.display
        for row in canvas._cells
    )


async def until(pilot, condition) -> None:
    """Wait for something a thread brings about."""
    for _ in range(3000):
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError("it did not come about")


async def until_shown(pilot, screen, words) -> str:
    """Wait for words on the screen."""
    await until(pilot, lambda: words in text_of(screen))
    return text_of(screen)


def when_told(*keys: str):
    async def run_before(pilot) -> None:
        await until_told(pilot)
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        await pilot.pause(0.05)

    return run_before


@SIZES
def test_advice(size, paths, snap_compare):
    app = Shell(AdviceScreen(paths, PRICES))
    assert snap_compare(app, terminal_size=size, run_before=when_told())


@SIZES
def test_advice_opened(size, paths, snap_compare):
    app = Shell(AdviceScreen(paths, PRICES))
    assert snap_compare(app, terminal_size=size, run_before=when_told("down", "down", "enter"))


def test_advice_without_prices_in_ascii(paths, snap_compare):
    app = Shell(AdviceScreen(paths, Money()), is_ascii=True)
    app.theme = "heatsoak-16"
    assert snap_compare(app, terminal_size=(80, 24), run_before=when_told())


async def test_every_key_does_what_it_says(paths):
    app = Shell(AdviceScreen(paths, PRICES))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await until_told(pilot)
        assert "Perf/$ maximizer" in text_of(screen)
        assert "SYNTHETIC" in text_of(screen)
        for key, cursor in (("down", 1), ("j", 2), ("up", 1), ("k", 0), ("up", 4), ("right", 0),
                            ("left", 4), ("right", 0)):  # fmt: skip
            await pilot.press(key)
            assert screen.view.cursor == cursor, key
        await pilot.press("enter")
        text = await until_shown(pilot, screen, "1 of 5")
        assert "GeForce RTX 5090 loses to RTX PRO 5000 72GB Blackwell above USD" in text
        assert "why" in text
        await pilot.press("pagedown")
        await pilot.press("pagedown")
        assert screen.view.scrolled > 0
        await until_shown(pilot, screen, "RTX PRO 4500 Blackwell: USD")
        await pilot.press("right")
        await until_shown(pilot, screen, "2 of 5")
        assert screen.view.scrolled == 0
        for _ in range(40):
            await pilot.press("pagedown")
        text = await until_shown(pilot, screen, "Slot and lanes")
        assert "more lines" not in text
        await pilot.press("escape")
        assert not screen.view.is_open
        assert app.screen is screen
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is not screen


async def test_leaving_before_the_rules_have_answered(paths, monkeypatch):
    told, may_go, taken = threading.Event(), threading.Event(), threading.Event()

    def slow(*arguments):
        told.set()
        may_go.wait(30)
        return advise_sessions(*arguments)

    monkeypatch.setattr("heatsoak_tui.screens.advice.advise_sessions", slow)

    class Watched(AdviceScreen):
        def _take(self, *arguments) -> None:
            taken.set()
            super()._take(*arguments)

    app = Shell(Watched(paths, PRICES))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, told.is_set)
        await pilot.press("escape")
        await pilot.pause()
        may_go.set()
        await until(pilot, taken.is_set)
        await pilot.pause()
        assert app._advice.view.report is None


async def test_a_must_is_asked_anew(paths):
    app = Shell(AdviceScreen(paths, PRICES))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await until_told(pilot)
        assert screen.view.report.advice[0].card == "GeForce RTX 5090"
        await pilot.press("e")
        await until(pilot, lambda: screen.view.report.advice[0].card != "GeForce RTX 5090")
        await until_shown(pilot, screen, "must: ECC")
        await pilot.press("e")
        await until(pilot, lambda: screen.view.report.advice[0].card == "GeForce RTX 5090")
        assert "must:" not in text_of(screen)


async def test_what_may_not_be_ranked_is_said_and_taken_only_when_asked(write_session, tmp_path):
    path = write_session(tmp_path, "a", "rtx-5090", 9402.0, protocol="smoke", flags=("smoke",))
    app = Shell(AdviceScreen([path], PRICES))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await until_told(pilot)
        assert screen.view.report is None
        words = " ".join(text_of(screen).split())
        assert "never ranked" in words
        assert "press a to take it" in words
        for key in ("down", "enter", "pagedown", "escape"):
            await pilot.press(key)
        await pilot.press("a")
        await until(pilot, lambda: screen.view.report is not None)
        await until_shown(pilot, screen, "SMOKE")


def test_every_size_of_every_panel(paths, tmp_path):
    many = [*paths]
    report = advise_sessions(many, Wishes(), PRICES)
    for view in (
        AdviceView(),
        AdviceView(problem="the sessions " + "cannot be read " * 20),
        AdviceView(report),
        AdviceView(advise_sessions(many, Wishes(), Money()), cursor=4),
    ):
        for panel in (AdviceHeader(view), AdviceTable(view), AdviceDetail(view)):
            for width, height in EVERY_SIZE:
                for line in panel.draw(width, height)[:height]:
                    assert len(to_cells(line, width)) == width


def test_nothing_is_wider_than_the_screen(paths):
    report = advise_sessions(paths, Wishes(), PRICES)
    for cursor in range(5):
        view = AdviceView(report, cursor=cursor)
        for width in (80, 120, 160):
            for panel in (AdviceHeader(view), AdviceTable(view), AdviceDetail(view)):
                for line in panel.draw(width, 200):
                    assert width_of(line) <= width, line
