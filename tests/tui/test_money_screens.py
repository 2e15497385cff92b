"""Prices edited beside a frozen result, every figure with its formula, and how it all looks."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from textual.widgets import Input as TextInput

from heatsoak.profiles.money import Input, Money
from heatsoak.profiles.prices import change_prices, prices_path, read_prices
from heatsoak.session.result import load_result
from heatsoak_tui.app import HeatsoakApp
from heatsoak_tui.panels.evidence import Evidence
from heatsoak_tui.panels.for_whom import ForWhom
from heatsoak_tui.panels.money import MoneyPanel
from heatsoak_tui.panels.price_list import PriceList
from heatsoak_tui.panels.price_note import PriceNote
from heatsoak_tui.panels.result_inputs import ResultInputs
from heatsoak_tui.panels.result_table import ResultTable
from heatsoak_tui.screens.advice import AdviceScreen
from heatsoak_tui.screens.fit import FitScreen
from heatsoak_tui.screens.inputs import InputsScreen
from heatsoak_tui.screens.prices import PricesScreen
from heatsoak_tui.screens.prompts import Ask
from heatsoak_tui.screens.result import ResultScreen
from heatsoak_tui.widgets.canvas import Canvas, to_cells
from heatsoak_tui.widgets.findings import Findings
from heatsoak_tui.widgets.price_draft import PriceDraft
from heatsoak_tui.widgets.run_canvas import Shown

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 34)], ids=["80x24", "120x34"])
SESSION = Path("20261130-2241-k3f9.heatsoak")
DAY = "2026-10-12"
PRICES = (
    Input("invoice", 2899.0, "yours", "USD", DAY, "rtx-5090"),
    Input("kwh_price", 0.187, "yours", "USD", DAY),
)
MORE = (
    *PRICES,
    Input("pue", 1.2, "yours", None, DAY),
    Input("residual_frac", 0.2, "yours", None, DAY),
    Input("cloud_per_hour", 0.9, "yours", "USD", DAY),
    Input("downtime_per_hour", 150.0, "yours", "USD", DAY),
    Input("invoice", 5400.0, "yours", "USD", DAY, "rtx-pro-5000-72"),
)


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """A home of the test's own, whose path does not show on the screen."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    monkeypatch.chdir(tmp_path)


async def until(pilot, condition) -> None:
    for _ in range(3000):
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError("it did not come about")


def text_of(screen) -> str:
    return "\n".join(
        "".join(char for char, _ in row).replace("\u2009", " ")
        for canvas in screen.query(Canvas)
        if canvas.display
        for row in canvas._cells
    )


def is_read(app) -> bool:
    """Whether the result is there, with all that is read in the background."""
    screens = [s for s in app.screen_stack if isinstance(s, ResultScreen)]
    found = screens[-1].found if screens else Findings()
    return found.document is not None and bool(found.advice or found.advice_note)


def app_on(run, quiet, **kwargs) -> HeatsoakApp:
    run.write(SESSION)
    app = HeatsoakApp(SESSION, control=lambda _: quiet, **kwargs)
    app.theme = "heatsoak-dark"
    return app


@pytest.fixture
async def result(written, quiet):
    """A pilot on the result of a steady run of two cards."""
    app = app_on(written(1500, is_frozen=True, end="steady"), quiet)
    async with app.run_test(size=(120, 34)) as pilot:
        await until(pilot, lambda: is_read(app))
        await pilot.pause(0.05)
        yield pilot


def rows_of(path, tables=("meta", "devices", "jobs", "samples", "steps", "verdicts", "results")):
    connection = sqlite3.connect(path)
    try:
        return {t: connection.execute(f"SELECT * FROM {t}").fetchall() for t in tables}
    finally:
        connection.close()


def annotations():
    return rows_of(SESSION, ("annotations",))["annotations"]


async def typed(pilot, text) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, Ask))
    pilot.app.screen.query_one(TextInput).value = text
    await pilot.press("enter")


async def test_prices_change_what_follows_and_nothing_that_was_measured(result):
    app, before = result.app, rows_of(SESSION)
    frozen = load_result(SESSION)["devices"]
    assert "no prices entered; $ enters them" in text_of(app.screen)
    assert annotations() == []
    await result.press("dollar_sign")
    assert isinstance(app.screen, PricesScreen)
    await result.press("enter")
    await typed(result, f"2899 USD {DAY}")
    await until(result, lambda: "tokens/s per USD" in text_of(app.screen))
    assert "3.24 ± 0.01" in text_of(app.screen)
    assert "enter what a kWh costs" in text_of(app.screen)
    await result.press("down", "enter")
    await typed(result, "0.187")
    await until(result, lambda: "USD 4 430" in text_of(app.screen))
    assert read_prices().given("kwh_price").currency == "USD"
    await result.press("escape")
    assert isinstance(app.screen, ResultScreen)
    text = text_of(app.screen)
    assert "TCO 3 years" in text
    assert "(3 340 to 5 620)" in text
    assert "assumed" in text
    assert "(examples)" in text
    await until(result, lambda: len(annotations()) == 2)
    assert rows_of(SESSION) == before
    assert load_result(SESSION)["devices"] == frozen
    assert [row[1] for row in annotations()] == ["prices", "prices"]
    assert load_result(SESSION)["economics"]["stored"]["data"]["all"]["kwh_price"]["value"] == 0.187


async def test_what_was_entered_is_forgotten(result):
    change_prices(put=PRICES)
    app = result.app
    await result.press("dollar_sign", "u")
    await until(result, lambda: read_prices().given("invoice", "rtx-5090") is None)
    await until(result, lambda: "reference (not used)" in text_of(app.screen))
    await result.press("u")
    assert "nothing of yours to forget" in text_of(app.screen)


async def test_an_input_that_cannot_be_is_told_and_changes_nothing(result):
    app = result.app
    await result.press("dollar_sign", "enter")
    await typed(result, "many dollars")
    await until(result, lambda: "no number" in text_of(app.screen))
    assert read_prices() == Money()
    assert not prices_path().exists()
    prices_path().parent.mkdir(parents=True)
    prices_path().write_text("mine")
    await result.press("enter")
    await typed(result, "2899 USD")
    await until(result, lambda: "move it away" in text_of(app.screen))
    assert prices_path().read_text() == "mine"


async def test_an_example_is_never_taken_by_pressing_enter(result):
    await result.press("dollar_sign", "down", "enter")
    await until(result, lambda: isinstance(result.app.screen, Ask))
    box = result.app.screen.query_one(TextInput)
    assert box.value == ""
    assert box.placeholder == "example: 0.187 USD"
    await result.press("enter")
    await until(result, lambda: isinstance(result.app.screen, PricesScreen))
    assert read_prices() == Money()


async def test_every_figure_opens_to_its_formula_and_inputs(result):
    change_prices(put=MORE)
    app = result.app
    app.screen.read_again()
    await until(result, lambda: "tokens/s per USD" in text_of(app.screen))
    await result.press("i")
    assert isinstance(app.screen, InputsScreen)
    panel, seen = app.screen.query_one(ResultInputs), ""
    for _ in range(20):
        seen += text_of(app.screen)
        before = panel.top
        await result.press("space")
        await result.pause()
        if panel.top == before:
            break
    for words in ("sustained rate / invoiced price", "J per unit / 3.6 x PUE", "nothing is disc",
                  "USD 2 899", "yours of 2026-10-12", "example: half of all hours", "Young",
                  "renting", "checkpoint every", "rtx-pro-5000-72", "2 320 to 3 480",
                  "read before the load", "frozen at 0:21:10"):  # fmt: skip
        assert words in seen, words
    bottom = panel.top
    await result.press("pageup", "up")
    assert panel.top < bottom - 1
    await result.press(*["shift+tab"] * 20)
    assert panel.top == 0
    await result.press("tab", "tab")
    assert "perf/$" in text_of(app.screen).splitlines()[3]
    await result.press("escape")
    assert isinstance(app.screen, ResultScreen)


@pytest.mark.parametrize("screen", [ResultScreen, PricesScreen, InputsScreen])
def test_every_key_says_what_it_does(screen):
    for binding in screen.BINDINGS:
        assert binding.id
        assert 0 < len(binding.tooltip) <= 46


async def test_keys_open_advice_and_memory(result):
    await result.press("w")
    assert isinstance(result.app.screen, AdviceScreen)
    await result.press("escape", "f")
    assert isinstance(result.app.screen, FitScreen)
    await result.press("escape")
    assert isinstance(result.app.screen, ResultScreen)


async def test_a_reading_that_was_overtaken_is_not_shown(result):
    screen = result.app.screen
    shown = screen.found.document
    assert shown is not None
    screen._take(Findings({}), "too late", screen._turn - 1)
    assert screen.found.document is shown
    assert not result.app._notifications


async def test_a_session_that_cannot_be_written_still_shows_its_money(written, quiet, monkeypatch):
    change_prices(put=PRICES)
    run = written(1500, is_frozen=True, end="steady")

    def refuse(*_):
        from heatsoak.errors import UsageError

        raise UsageError("cannot annotate: attempt to write a readonly database")

    monkeypatch.setattr("heatsoak.session.kept_prices.annotate", refuse)
    app = app_on(run, quiet)
    async with app.run_test(size=(120, 34)) as pilot:
        await until(pilot, lambda: is_read(app))
        await until(pilot, lambda: any("could not be stored" in n.message
                                       for n in app._notifications))  # fmt: skip
        assert "USD 4 430" in text_of(app.screen)


async def test_a_run_that_goes_on_is_not_annotated(written, quiet):
    change_prices(put=PRICES)
    run = written(1500, is_frozen=True)
    writer = run.open(SESSION)
    writer.write(run.joined())
    app = HeatsoakApp(SESSION, control=lambda _: quiet)
    async with app.run_test(size=(120, 34)) as pilot:
        await until(pilot, lambda: app.view.device_ids)
        await pilot.press("t")
        await until(pilot, lambda: is_read(app) and "USD 4 430" in text_of(app.screen))
        assert annotations() == []
    writer.close("steady")


async def test_what_is_not_steady_has_no_money(written, quiet):
    change_prices(put=PRICES)
    app = app_on(written(872, end="interrupted"), quiet)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: is_read(app))
        await until(pilot, lambda: "nothing is computed" in text_of(app.screen))
        text = text_of(app.screen)
        assert "tokens/s per USD" not in text
        assert "TCO" not in text


def test_rates_are_added_only_of_cards_that_are_steady(written):
    run = written(1500, is_frozen=True, end="steady")
    view = run.view()

    def first_lines():
        panel = ResultTable(Shown(view, "synthetic-0"))
        return "\n".join("".join(t for t, _ in line) for line in panel.draw(120, 20))

    assert "all 2" in first_lines()
    assert "18\u2009590" in first_lines()
    data = view.result("synthetic-1")
    data["sustained"], data["last_window"] = None, data["sustained"]
    assert "all 2" not in first_lines()
    assert "18\u2009590" not in first_lines()


PANELS = (ResultTable, MoneyPanel, ForWhom, Evidence, ResultInputs)


@pytest.mark.parametrize("prices", [(), PRICES, MORE], ids=["none", "two", "more"])
def test_every_panel_at_every_size(prices, written, tmp_path):
    if prices:
        change_prices(put=prices)
    run = written(1500, is_frozen=True, end="steady")
    shown = Shown(run.view(), "synthetic-1")
    found = Findings(load_result(run.write(tmp_path / "a.heatsoak")))
    draft = PriceDraft(("rtx-5090",), Money(tuple(prices)), trouble="wrong " * bool(prices))
    panels = [panel(shown, found) for panel in PANELS]
    panels += [PriceList(draft), PriceNote(draft)]
    for width, height in [(0, 0), (1, 1), (20, 5), (56, 14), (80, 24), (109, 30), (200, 60)]:
        for panel in panels:
            for line in panel.draw(width, height)[:height]:
                assert len(to_cells(line, width)) == width


def test_scaling_stands_beside_what_the_article_says(written, tmp_path):
    run = written(1500, is_frozen=True, end="steady")
    document = load_result(run.write(tmp_path / "a.heatsoak"))
    document["economics"]["scaling"] = [
        {"card": card, "name": "RTX 5090", "workload": "llm", "recipe_hash": "0", "cards": 4,
         "efficiency": {"mean": 0.953, "u95": 0.011, "unit": "1"},
         "marginal": {"mean": 0.91, "u95": 0.02, "unit": "1"},
         "is_per_w_rising": True, "is_single_offloaded": True}
        for card in ("rtx-5090", "another")
    ]  # fmt: skip
    document["economics"]["idle"] = [{"device_id": "2", "name": "RTX 5090", "power_w": 31.2}]
    shown, found = Shown(run.view(), "synthetic-0"), Findings(document)
    text = "\n".join("".join(t for t, _ in line) for line in ResultInputs(shown, found)._lines(200))
    assert text.count("scaling 4 cards") == 1
    for words in ("0.95  ± 0.01", "of 4 times one card; the last card adds 0.91 ± 0.02",
                  "perf/W rises with the cards", "this flatters", "Blackwell-class 0.91 to 0.97",
                  "RTX 6000 Ada 0.94 to 0.95 (not verified elsewhere)",
                  "earlier consumer cards notably lower",
                  "idle beside it: RTX 5090, 31.2 W"):  # fmt: skip
        assert words in text, words
    panel = "".join(t for line in MoneyPanel(shown, found).draw(80, 9) for t, _ in line)
    assert "scaling 4 cards" in panel


@pytest.mark.parametrize(
    ("frac", "flops", "said"),
    [(0.9, 6e9, "doubt the peak"), (0.1, 6e9, "doubt the software"), (0.1, 1e9, "peak"),
     (0.7, 6e9, "peak"), (None, 6e9, "not known")],
)  # fmt: skip
def test_an_mfu_that_cannot_be_is_doubted(frac, flops, said, written, tmp_path):
    run = written(1500, is_frozen=True, end="steady")
    document = load_result(run.write(tmp_path / "a.heatsoak"))
    document["jobs"][0]["mfu"]["nominal_frac"] = frac
    document["jobs"][0]["facts"] = {"flops_per_unit": flops}
    panel = Evidence(Shown(run.view(), "synthetic-0"), Findings(document))
    (line,) = (line for line in panel.draw(120, 9) if "MFU" in line[0][0])
    assert said in line[1][0]
    assert ("doubt" in line[1][0]) is ("doubt" in said)


# -- how it looks --------------------------------------------------------------------------------


def when_read(*keys: str):
    async def run_before(pilot) -> None:
        await until(pilot, lambda: is_read(pilot.app))
        await pilot.pause(0.05)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.02)
        await pilot.pause(0.05)

    return run_before


def steady(written):
    return written(1500, is_frozen=True, end="steady")


@SIZES
def test_result_with_prices(size, written, quiet, snap_compare):
    change_prices(put=PRICES)
    app = app_on(steady(written), quiet)
    assert snap_compare(app, terminal_size=size, run_before=when_read())


@SIZES
def test_result_with_more(size, written, quiet, snap_compare):
    """All inputs the user's, a second card picked, smoke: every label is there."""
    change_prices(put=MORE)
    run = steady(written)
    run.meta["protocol"] = "smoke"
    app = app_on(run, quiet)
    assert snap_compare(app, terminal_size=size, run_before=when_read("right"))


@SIZES
def test_prices_screen(size, written, quiet, snap_compare):
    change_prices(put=PRICES)
    app = app_on(steady(written), quiet)
    assert snap_compare(app, terminal_size=size, run_before=when_read("dollar_sign", "down"))


@SIZES
def test_inputs_screen(size, written, quiet, snap_compare):
    change_prices(put=MORE)
    app = app_on(steady(written), quiet)
    keys = ("i", *["tab"] * 7)
    assert snap_compare(app, terminal_size=size, run_before=when_read(*keys))


def test_result_in_ascii_and_sixteen_colours(written, quiet, snap_compare):
    change_prices(put=PRICES)
    app = app_on(steady(written), quiet, is_ascii=True)
    app.theme = "heatsoak-16"
    assert snap_compare(app, terminal_size=(80, 24), run_before=when_read())
