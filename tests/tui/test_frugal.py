"""The frugal compositor leaves the terminal as the stock one does, with a tenth of the bytes."""

from __future__ import annotations

import io
import unicodedata
from dataclasses import replace

import pyte
import pytest
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from textual._compositor import Compositor

from heatsoak.session.rows import Batch
from heatsoak_tui.app import HeatsoakApp
from heatsoak_tui.frugal import FrugalCompositor, Shadow, _cells
from heatsoak_tui.messages import BatchArrived
from heatsoak_tui.screens.live import LiveScreen
from heatsoak_tui.screens.prompts import Choice


class Recording(HeatsoakApp):
    """Sends what it would write to a terminal to an emulator instead."""

    def __init__(self, terminal: pyte.ByteStream, color_system: str, **kwargs) -> None:
        super().__init__(**kwargs)
        self.terminal = terminal
        self.sizes: list[int] = []
        self.rendering = Console(
            file=io.StringIO(), force_terminal=True, color_system=color_system, legacy_windows=False
        )

    def _display(self, screen, renderable):
        if renderable is not None and self._running and not self._batch_count:
            data = renderable.render_segments(self.rendering).encode()
            # A line feed of the stock compositor moves down and to the first column.
            self.terminal.feed(data.replace(b"\n", b"\r\n"))
            self.sizes.append(len(data))
        super()._display(screen, renderable)


def look(emulator: pyte.Screen) -> list[list[tuple]]:
    def cell(char):
        # The colour of nothing is not to be seen, unless it is reversed or underlined.
        front = char.fg if char.data.strip() or char.reverse or char.underscore else None
        return (char.data, front, char.bg, bool(char.data.strip()) and char.bold)

    return [
        [cell(emulator.buffer[y][x]) for x in range(emulator.columns)]
        for y in range(emulator.lines)
    ]


def is_waiting_to_draw(screen) -> bool:
    flags = (screen._layout_required, screen._repaint_required, screen._scroll_required)
    return any(flags) or bool(screen._dirty_widgets or screen._compositor._dirty_regions)


async def drawn(is_frugal, color_system, run, size, control, monkeypatch, tmp_path):
    """What the terminal shows after each step of a scripted session, and the bytes of each."""
    emulator = pyte.Screen(*size)
    path = tmp_path / "a.heatsoak"
    if not path.exists():
        run.open(path)
    stream = pyte.ByteStream(emulator)
    app = Recording(stream, color_system, session=path, control=lambda _: control)
    if not is_frugal:
        monkeypatch.setattr("heatsoak_tui.screens.base.make_frugal", lambda _: None)
        monkeypatch.setattr("heatsoak_tui.screens.prompts.make_frugal", lambda _: None)
        monkeypatch.setattr("heatsoak_tui.screens.help.make_frugal", lambda _: None)
    looks, sizes = [], []
    async with app.run_test(size=size) as pilot:
        live = app.screen
        assert isinstance(live, LiveScreen)
        expected = FrugalCompositor if is_frugal else Compositor
        assert type(live._compositor) is expected
        live._feed.stop()
        joined = run.joined()
        early = replace(joined, **{
            name: tuple(row for row in getattr(joined, name) if row.t_s < 852)
            for name in ("samples", "steps", "phases", "events", "verdicts")
        })  # fmt: skip
        steps = [Batch(run.meta, devices=run.devices, jobs=run.jobs), replace(early, meta=run.meta)]
        steps += [batch for batch in run.batches if batch.samples and batch.samples[0].t_s >= 852]
        steps[8:8] = ["z", "right", "z", "z", "z", "a", "a", "a", "a", "a", "p", "p"]
        steps += ["q", "escape", "question_mark", "escape", "t", "t", "resize", "ctrl+l"]
        for step in steps:
            app.sizes.clear()
            if step == "resize":
                emulator.resize(size[1] - 3, size[0] - 7)
                await pilot.resize_terminal(size[0] - 7, size[1] - 3)
            elif isinstance(step, str):
                await pilot.press(step)
            else:
                live.post_message(BatchArrived(step))
            # Drawn by a timer: wait until the screen has nothing left to draw.
            await pilot.pause()
            while is_waiting_to_draw(app.screen):
                await pilot.pause(0.005)
            looks.append(look(emulator))
            sizes.append(sum(app.sizes))
    return looks, sizes


@pytest.mark.parametrize(
    ("color_system", "size"), [("truecolor", (120, 34)), ("standard", (80, 24))]
)
async def test_the_terminal_shows_the_same(color_system, size, soak, quiet, monkeypatch, tmp_path):
    run = soak(until_s=860)
    arguments = (color_system, run, size, quiet, monkeypatch)
    frugal, frugal_sizes = await drawn(True, *arguments, tmp_path)
    stock, stock_sizes = await drawn(False, *arguments, tmp_path)
    for step, (ours, theirs) in enumerate(zip(frugal, stock, strict=True)):
        for y, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert a == b, f"step {step}, line {y}"
    second = slice(4, 8)
    assert sum(frugal_sizes[second]) * 2 < sum(stock_sizes[second])


def test_wide_characters_and_accents_survive():
    emulator = pyte.Screen(12, 1)
    stream = pyte.Stream(emulator)
    shadow = Shadow()
    shadow.forget(12, 1)
    for text in (
        "abcdefghijkl",
        "漢字 ok      ",
        "x漢字ok      ",
        "e\u0301a漢c       ",
        "abcdefghijkl",
    ):
        cells = _cells([Segment(text)], ColorSystem.TRUECOLOR)[:12]
        stream.feed(shadow.difference([(0, 0, cells)]))
        assert emulator.display[0].rstrip() == unicodedata.normalize("NFC", text).rstrip()[:12]


def test_choice_is_drawn_frugally_too():
    assert type(Choice("?", [("a", "b", "c")])._compositor) is FrugalCompositor
