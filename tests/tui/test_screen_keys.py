"""Every key does what its screen says, on real session files and with real threads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.widgets import Input

from heatsoak.errors import UsageError
from heatsoak.session.rows import Batch, EventRow
from heatsoak_tui.app import HeatsoakApp, user_keymap
from heatsoak_tui.panels.multiples import Multiples
from heatsoak_tui.screens.help import Help
from heatsoak_tui.screens.live import LiveScreen
from heatsoak_tui.screens.prompts import Ask, Choice
from heatsoak_tui.screens.result import ResultScreen
from heatsoak_tui.screens.setup import SetupScreen
from heatsoak_tui.widgets.canvas import Canvas


async def until(pilot, condition) -> None:
    """Wait for something a thread or a timer brings about; the test's own time-out is the limit."""
    for _ in range(3000):
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError("it did not come about")


def text_of(screen) -> str:
    return "\n".join(
        "".join(char for char, _ in row)
        for canvas in screen.query(Canvas)
        if canvas.display
        for row in canvas._cells
    )


@pytest.fixture
async def live(written, quiet, tmp_path):
    """A pilot on a run that is going on; `pilot.writer` is its recorder's end of the file."""
    run = written(872)
    writer = run.open(tmp_path / "a.heatsoak")
    writer.write(run.joined())
    app = HeatsoakApp(writer.path, control=lambda _: quiet)
    async with app.run_test(size=(120, 34)) as pilot:
        await until(pilot, lambda: app.view.device_ids and app.view.latest("synthetic-1"))
        pilot.writer = writer
        yield pilot


async def test_arrows_and_numbers_pick_a_card(live):
    screen = live.app.screen
    assert screen.shown.device_id == "synthetic-0"
    for key, picked in (("right", 1), ("right", 0), ("left", 1), ("0", 0), ("1", 1), ("7", 1),
                        ("k", 0), ("down", 1)):  # fmt: skip
        await live.press(key)
        assert screen.shown.device_id == f"synthetic-{picked}", key
    assert "▸ 1 RTX 5090" in text_of(screen)


async def test_zoom_goes_round(live):
    seen = []
    for _ in range(4):
        await live.press("z")
        seen.append(live.app.screen.shown.zoom_s)
    assert seen == [1800.0, 600.0, 180.0, None]


async def test_a_paused_view_stands_still_while_the_run_goes_on(live):
    screen = live.app.screen
    await live.press("p")
    assert "VIEW PAUSED" in text_of(screen)
    before = text_of(screen).splitlines()[4:]
    event = EventRow(900.0, "mark", "something new")
    live.writer.write(Batch({}, events=(event,)))
    await until(live, lambda: screen.shown.view.now_s == 900.0)
    await live.pause(0.05)
    assert text_of(screen).splitlines()[4:] == before
    await live.press("p")
    assert "something new" in text_of(screen)


async def test_small_multiples_of_each_quantity_and_back(live):
    screen = live.app.screen
    shown = []
    for _ in range(5):
        await live.press("a")
        await live.pause(0.02)
        multiples = screen.query_one(Multiples)
        shown.append(multiples.reading if multiples.display else None)
    assert shown == ["rate", "power_w", "temperature_c", "sm_clock_mhz", None]


async def test_a_mark_is_asked_for_and_sent(live, quiet):
    await live.press("m")
    assert isinstance(live.app.screen, Ask)
    await live.press(*"door", "enter")
    await until(live, lambda: quiet.asked == [("mark", "door")])
    await live.press("m", "escape")
    assert isinstance(live.app.screen, LiveScreen)
    await live.press("x")
    await until(live, lambda: quiet.asked[-1] == ("extend", 900.0))
    assert len(quiet.asked) == 2


async def test_stopping_asks_first(live, quiet):
    await live.press("s")
    assert isinstance(live.app.screen, Choice)
    await live.press("escape")
    assert quiet.asked == []
    await live.press("s", "s")
    await until(live, lambda: quiet.asked == ["stop"])
    assert live.app.is_running


async def test_what_the_recorder_refuses_is_said(live, quiet):
    def refuse(_: float) -> None:
        raise UsageError("no time-out to extend")

    quiet.extend = refuse
    await live.press("x")
    await until(live, lambda: any("no time-out" in n.message for n in live.app._notifications))


@pytest.mark.parametrize("keys", [["d"], ["q", "d"], ["q", "enter"]], ids="".join)
async def test_leaving_a_run_that_goes_on(keys, live, quiet):
    await live.press(*keys)
    await until(live, lambda: live.app._exit)
    assert quiet.asked == []
    assert live.app.exit_status() == 0
    assert live.app.parting_line().startswith("the run goes on; `heatsoak attach k3f9`")


async def test_leaving_by_stopping_waits_for_the_end(live, quiet):
    await live.press("q", "s")
    await until(live, lambda: quiet.asked == ["stop"])
    assert not live.app._exit
    live.writer.close("interrupted")
    await until(live, lambda: live.app._exit)
    assert live.app.exit_status() == 130


async def test_ctrl_c_asks_too(live):
    await live.press("ctrl+c")
    assert isinstance(live.app.screen, Choice)


async def test_the_end_of_the_run_opens_the_result(live):
    app = live.app
    live.writer.close("not-steady")
    await until(live, lambda: isinstance(app.screen, ResultScreen))
    await until(live, lambda: "NOT-STEADY" in text_of(app.screen))
    await live.press("t")
    assert isinstance(app.screen, LiveScreen)
    await live.press("t")
    assert isinstance(app.screen, ResultScreen)
    await live.press("q")
    assert app._exit
    assert app.exit_status() == 3
    assert app.parting_line().startswith("not-steady SYNTHETIC: nothing frozen; ")


async def test_a_result_before_the_end_leaves_by_the_same_question(live):
    await live.press("t", "q")
    await until(live, lambda: isinstance(live.app.screen, Choice))


async def test_help_lists_every_key(live):
    await live.press("question_mark")
    assert isinstance(live.app.screen, Help)
    text = live.app.screen._text
    for binding in LiveScreen.BINDINGS:
        if binding.id:
            assert binding.id in text
            assert len(binding.tooltip) <= 46
    await live.press("escape")
    assert isinstance(live.app.screen, LiveScreen)


async def test_keys_can_be_mapped_anew(written, quiet, tmp_path):
    folder = tmp_path / "heatsoak"
    folder.mkdir()
    (folder / "keys.yaml").write_text("zoom: f\n")
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert user_keymap(environment) == ({"zoom": "f"}, None)
    for text, words in (("- nonsense\n", "must map binding ids"), ("a: [\n", "cannot be read")):
        (folder / "keys.yaml").write_text(text)
        keys, problem = user_keymap(environment)
        assert keys == {}
        assert words in problem
    (folder / "keys.yaml").unlink()
    assert user_keymap(environment) == ({}, None)
    app = HeatsoakApp(written(20).open(tmp_path / "a.heatsoak").path, control=lambda _: quiet)
    app.set_keymap({"zoom": "f"})
    async with app.run_test(size=(120, 34)) as pilot:
        await until(pilot, lambda: app.view.device_ids)
        await pilot.press("z")
        assert app.screen.shown.zoom_s is None
        await pilot.press("f")
        assert app.screen.shown.zoom_s == 1800.0
        await until(pilot, lambda: "f zoom" in text_of(app.screen))


async def test_a_recorder_that_crashed_is_said_and_its_session_closed(live, quiet):
    quiet.is_there = False
    screen = live.app.screen
    await until(live, lambda: quiet.asked == ["close"])
    assert "without closing" in text_of(screen)


async def test_a_new_soak_from_the_result(written, quiet, tmp_path):
    run = written(60, end="interrupted")
    app = HeatsoakApp(run.write(tmp_path / "a.heatsoak"), control=lambda _: quiet,
                      setup=lambda: SetupScreen(host="aurora"))  # fmt: skip
    async with app.run_test(size=(120, 34)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ResultScreen))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, SetupScreen))
        assert app.parting_line() == ""
        assert app.exit_status() == 0


# -- setup -------------------------------------------------------------------------------------


@pytest.fixture
async def setup_pilot(monkeypatch):
    monkeypatch.setattr("heatsoak.launch.catalog.training_problem", lambda: None)
    app = HeatsoakApp(setup=lambda: SetupScreen(host="aurora"))
    async with app.run_test(size=(120, 34)) as pilot:
        await until(pilot, lambda: app.screen.draft.is_found)
        yield pilot


async def test_the_best_device_is_chosen_and_space_takes_it_back(setup_pilot):
    screen = setup_pilot.app.screen
    assert screen.draft.chosen == {screen.draft.devices[0].device_id}
    assert "Ready" in text_of(screen)
    await setup_pilot.press("space")
    assert screen.draft.chosen == set()
    assert "Not ready" in text_of(screen)
    await setup_pilot.press("enter")
    assert not screen.draft.is_starting


async def test_synthetic_cards_take_the_synthetic_workload(setup_pilot):
    screen = setup_pilot.app.screen
    await setup_pilot.press("y")
    ask = setup_pilot.app.screen
    assert isinstance(ask, Ask)
    await setup_pilot.press("x", "2")
    assert ask.query_one(Input).value == "rtx-5090x2"
    await setup_pilot.press("enter")
    draft = screen.draft
    assert draft.chosen == {"synthetic-0", "synthetic-1"}
    assert draft.workload_name == "synthetic"
    assert "SYNTHETIC" in text_of(screen)
    plan = draft.plan()
    assert plan.devices == "synthetic:rtx-5090x2"
    assert plan.workload is None
    # Cards of one specification are chosen together: the plan could not say otherwise.
    draft.toggle("synthetic-0")
    assert draft.chosen == set()


async def test_an_unknown_card_is_refused_in_one_line(setup_pilot):
    screen = setup_pilot.app.screen
    await setup_pilot.press("y", "z", "enter")
    assert "no card profile" in text_of(screen)
    assert screen.draft.devices


async def test_the_plan_is_edited_with_keys(setup_pilot):
    screen = setup_pilot.app.screen
    await setup_pilot.press("e")
    assert screen.draft.pane == "plan"
    await setup_pilot.press("up")
    assert screen.draft.protocol == "extended"
    await setup_pilot.press("down", "down", "down")
    assert screen.draft.protocol == "smoke"
    assert "SMOKE" in text_of(screen)
    fields = {one.key: index for index, one in enumerate(screen.draft.fields())}
    for _ in range(fields["context"]):
        await setup_pilot.press("right")
    before = screen.draft.recipe().context
    await setup_pilot.press("space")
    assert screen.draft.recipe().context == 2 * before
    await setup_pilot.press("e", *"nonsense", "enter")
    assert "Not ready" in text_of(screen)
    assert "context" in text_of(screen).splitlines()[1]
    await setup_pilot.press("e", *"64", "enter")
    assert screen.draft.plan().recipe == {"context": 64}
    assert "Ready" in text_of(screen)


async def test_a_refused_start_is_said_in_place(setup_pilot, monkeypatch):
    def refuse(plan):
        raise UsageError("that card is in use")

    monkeypatch.setattr("heatsoak.recorder.client.start", refuse)
    screen = setup_pilot.app.screen
    await setup_pilot.press("enter")
    await until(setup_pilot, lambda: "that card is in use" in text_of(screen))
    assert not screen.draft.is_starting


async def test_panes_and_lists(setup_pilot):
    screen = setup_pilot.app.screen
    await setup_pilot.press("tab", "down", "space")
    assert screen.draft.pane == "workloads"
    await setup_pilot.press("shift+tab", "down", "down", "down", "down")
    assert screen.draft.cursor["cards"] == len(screen.draft.devices)
    await setup_pilot.press("space")
    assert isinstance(setup_pilot.app.screen, Ask)


async def test_a_real_run_from_setup_to_result(tmp_path, monkeypatch):
    """Setup starts a real recorder in simulated time; its end opens the result."""
    for name in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        folder = tmp_path / name
        folder.mkdir(mode=0o700)
        monkeypatch.setenv(name, str(folder))
    app = HeatsoakApp(setup=lambda: SetupScreen(host="aurora"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.screen.draft.is_found)
        draft = app.screen.draft
        app.screen._add_synthetic("rtx-5090")
        draft.protocol = "smoke"
        plan = draft.plan
        monkeypatch.setattr(type(draft), "plan", lambda _: replace(plan(), speed=60.0))
        await pilot.press("enter")
        for _ in range(3000):
            if isinstance(app.screen, ResultScreen):
                break
            await pilot.pause(0.01)
        await pilot.pause(0.05)
        text = text_of(app.screen)
        assert "SYNTHETIC SMOKE" in text
        assert "no prices entered" in text
        await pilot.press("q")
    assert app.view.session_state in ("steady", "not-steady")
    assert app.exit_status() == (0 if app.view.session_state == "steady" else 3)
    assert app.parting_line().startswith(f"{app.view.session_state} SYNTHETIC SMOKE: ")
