"""No size of a terminal and no number of cards breaks a screen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from heatsoak.session.rows import Batch, JobRow
from heatsoak.telemetry.sample import DeviceSample
from heatsoak_tui.app import HeatsoakApp
from heatsoak_tui.messages import BatchArrived
from heatsoak_tui.panels.aside import Aside
from heatsoak_tui.panels.card_table import CardTable
from heatsoak_tui.panels.charts import Charts
from heatsoak_tui.panels.header import Header
from heatsoak_tui.panels.last_event import LastEvent
from heatsoak_tui.panels.multiples import Multiples
from heatsoak_tui.panels.result_table import ResultTable
from heatsoak_tui.panels.session_line import SessionLine
from heatsoak_tui.run_view import RunView
from heatsoak_tui.screens.live import LiveScreen
from heatsoak_tui.screens.result import ResultScreen
from heatsoak_tui.widgets.canvas import Canvas, changed_spans, to_cells
from heatsoak_tui.widgets.run_canvas import Shown

PANELS = (Header, CardTable, Charts, Multiples, Aside, LastEvent, ResultTable)

SIZES = [
    (0, 0), (1, 1), (2, 9), (20, 5), (21, 6), (39, 11), (56, 14), (57, 15), (79, 23), (80, 24),
    (99, 20), (100, 19), (101, 25), (120, 34), (160, 12), (200, 60), (400, 100),
]  # fmt: skip


def widened(run, count):
    """The same run with so many cards."""
    infos = tuple(replace(run.devices[i % 2], device_id=f"synthetic-{i}") for i in range(count))
    jobs = tuple(
        JobRow(
            f"job-{i}", "synthetic", 1, run.jobs[0].recipe, "synthetic", "tokens", (d.device_id,)
        )
        for i, d in enumerate(infos)
    )
    joined = run.joined()

    def spread(rows, name):
        found = []
        for i in range(count):
            owner = run.devices[i % 2].device_id
            found += [
                replace(row, device_id=f"synthetic-{i}") for row in rows if row.device_id == owner
            ]
        return tuple(found)

    steps = tuple(
        replace(row, job_id=f"job-{i}")
        for i in range(count)
        for row in joined.steps
        if row.job_id == f"job-{i % 2}"
    )
    opening = Batch(run.meta, devices=infos, jobs=jobs)
    rest = Batch(
        run.meta, samples=spread(joined.samples, "samples"), steps=steps, events=joined.events,
        verdicts=spread(joined.verdicts, "verdicts"), results=spread(joined.results, "results"),
    )  # fmt: skip
    return opening, rest


@pytest.mark.parametrize("count", range(1, 9))
def test_every_panel_at_every_size(count, written):
    view = RunView()
    for batch in widened(written(150, is_frozen=count % 2 == 0), count):
        view.apply(batch)
    for device_id in (view.device_ids[0], view.device_ids[-1]):
        for zoom_s in (None, 60.0):
            shown = Shown(view, device_id, zoom_s)
            panels = [panel(shown) for panel in PANELS]
            panels.append(SessionLine(shown, Path("x" * 90 + ".heatsoak")))
            for width, height in SIZES:
                for panel in panels:
                    lines = panel.draw(width, height)
                    for line in lines[:height]:
                        assert len(to_cells(line, width)) == width


async def test_resizing_while_keys_are_pressed(written, quiet, tmp_path):
    run = written(150)
    opening, rest = widened(run, 8)
    app = HeatsoakApp(run.open(tmp_path / "a.heatsoak").path, control=lambda _: quiet)
    async with app.run_test(size=(20, 5)) as pilot:
        live = app.screen
        live._feed.stop()
        await pilot.pause(0.05)
        live.shown.view.__init__()
        for batch in (opening, rest):
            live.post_message(BatchArrived(batch))
        for width, height in [(39, 11), (56, 14), (99, 20), (200, 60), (1, 1), (80, 24)]:
            await pilot.resize_terminal(width, height)
            for key in ("right", "z", "a", "t", "t"):
                await pilot.press(key)
            for canvas in app.screen.query(Canvas):
                for row in canvas._cells if canvas.size.width else ():
                    assert len(row) == canvas.size.width
    assert isinstance(live, LiveScreen)


@pytest.mark.parametrize("size", [(20, 5), (80, 24), (200, 60)])
async def test_before_anything_is_known(size, written, quiet, tmp_path):
    run = written(30)
    app = HeatsoakApp(run.open(tmp_path / "a.heatsoak").path, control=lambda _: quiet)
    async with app.run_test(size=size) as pilot:
        live = app.screen
        for _ in range(2000):
            if app.view.device_ids:
                break
            await pilot.pause(0.01)
        assert app.view.latest("synthetic-0") is None
        for key in ("a", "z", "right", "t", "t"):
            await pilot.press(key)
        if size == (80, 24):
            text = "\n".join("".join(c for c, _ in r) for w in live.query(Canvas) for r in w._cells)
            assert "waiting for the first reading" in text


async def test_a_card_that_reports_nothing(written, quiet, tmp_path):
    run = written(30)
    silent = replace(run.devices[0], memory_total_bytes=None, power_limit_w=None)
    samples = tuple(DeviceSample(float(t), silent.device_id) for t in range(60))
    app = HeatsoakApp(run.open(tmp_path / "a.heatsoak").path, control=lambda _: quiet)
    async with app.run_test(size=(120, 34)) as pilot:
        app.screen._feed.stop()
        await pilot.pause(0.05)
        view = app.view
        view.__init__()
        app.screen.post_message(BatchArrived(Batch(run.meta, devices=(silent,), samples=samples)))
        await pilot.pause(0.05)
        await pilot.press("t")
        assert isinstance(app.screen, ResultScreen)
        cells = [r for w in app.screen_stack[1].query(Canvas) for r in w._cells]
        text = "\n".join("".join(c for c, _ in row) for row in cells)
        assert "not reported by this device" in text
        assert "      —" in text
        (card,) = (line for line in text.splitlines() if "RTX 5090  " in line)
        assert card.split()[3:9] == ["—", "—", "—", "—", "—", "warming"]


def test_a_line_becomes_exactly_as_many_cells():
    assert to_cells([("abc", "r")], 5) == [
        ("a", "r"),
        ("b", "r"),
        ("c", "r"),
        (" ", "text"),
        (" ", "text"),
    ]
    assert to_cells([("abc", "r")], 2) == [("a", "r"), ("b", "r")]
    assert to_cells([("漢字", "r")], 3) == [("漢", "r"), ("", "r"), (" ", "r")]
    assert [c for c, _ in to_cells([("a\x1b[31m\nb\u200b", "r")], 8)] == list("a[31mb  ")


def test_changed_cells_are_joined_across_short_gaps():
    old = to_cells([("aaaaaaaaaa", "r")], 10)
    new = to_cells([("abababaaab", "r")], 10)
    assert changed_spans(old, new) == [(1, 10)]
    new = to_cells([("baaaaaaaab", "r")], 10)
    assert changed_spans(old, new) == [(0, 1), (9, 10)]
    assert changed_spans(old, old) == []
