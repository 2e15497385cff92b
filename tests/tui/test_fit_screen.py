"""The memory screen: the matrix, the picked cell, the keys."""

from __future__ import annotations

import pytest
from textual.widgets import Input

from heatsoak.economics.training import Training
from heatsoak.profiles.models import find_model
from heatsoak_tui.app import HeatsoakApp
from heatsoak_tui.panels.fit_detail import FitDetail
from heatsoak_tui.panels.fit_header import FitHeader
from heatsoak_tui.panels.fit_matrix import FitMatrix
from heatsoak_tui.screens.fit import FitScreen
from heatsoak_tui.widgets.canvas import Canvas, to_cells
from heatsoak_tui.widgets.fit_choice import FitChoice, memory_class

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 34)], ids=["80x24", "120x34"])


def app_with(screen: FitScreen | None = None, **options) -> HeatsoakApp:
    app = HeatsoakApp(setup=lambda: screen or FitScreen(), **options)
    app.theme = "heatsoak-dark"
    return app


def pressed(*keys: str):
    async def run_before(pilot) -> None:
        for key in keys:
            await pilot.press(key)
        await pilot.pause(0.05)

    return run_before


def text_of(app) -> str:
    rows = [row for canvas in app.screen.query(Canvas) if canvas.display for row in canvas._cells]
    return "\n".join("".join(char for char, _ in row) for row in rows)


@SIZES
def test_13b_in_full(size, snap_compare):
    assert snap_compare(app_with(), terminal_size=size, run_before=pressed())


@SIZES
def test_four_cards_share_a_longer_context(size, snap_compare):
    keys = pressed("c", "c", "x", "up")
    assert snap_compare(app_with(), terminal_size=size, run_before=keys)


def test_in_ascii_and_sixteen_colours(snap_compare):
    app = app_with(is_ascii=True)
    app.theme = "heatsoak-16"
    keys = pressed("m", "m", "m", "m", "m", "left", "left", "left", "left")
    assert snap_compare(app, terminal_size=(80, 24), run_before=keys)


async def test_keys_change_what_is_asked():
    app = app_with()
    async with app.run_test(size=(120, 34)) as pilot:
        choice = app.screen.choice
        for key, found in [
            ("m", lambda: choice.training.method == "full-adamw-fp32grad"),
            ("M", lambda: choice.training.method == "full-adamw"),
            ("x", lambda: choice.training.context == 8192),
            ("X", lambda: choice.training.context == 4096),
            ("b", lambda: choice.training.micro_batch == 2),
            ("B", lambda: choice.training.micro_batch == 1),
            ("c", lambda: choice.n == 2),
            ("r", lambda: not choice.training.checkpointing),
            ("o", lambda: choice.training.loss_chunks == 8),
        ]:
            await pilot.press(key)
            assert found(), key
        assert choice.asked.shard == "zero3"
        assert "loss in 8 chunks · 2 cards, zero3" in text_of(app)


async def test_arrows_pick_a_cell_and_stop_at_the_edge():
    app = app_with()
    async with app.run_test(size=(80, 24)) as pilot:
        choice = app.screen.choice
        assert (choice.shape.name, choice.card.id) == ("llama-2-13b", "rtx-pro-5000-72")
        await pilot.press("left", "down")
        assert (choice.shape.name, choice.card.id) == ("qwen2.5-14b", "rtx-6000-ada")
        choice.row, choice.column = 1, len(choice.cards) - 2
        await pilot.press("right", "right", "up", "up")
        assert (choice.row, choice.column) == (0, len(choice.cards) - 1)
        assert "gpt2 has 1\u2009024 positions: X halves the context" in text_of(app)
        for _ in range(3):
            await pilot.press("X")
        assert "gpt2 on B200" in text_of(app)


async def test_a_typed_model_joins_the_list():
    app = app_with()
    async with app.run_test(size=(120, 34)) as pilot:
        choice = app.screen.choice
        count = len(choice.shapes)
        words = "layers=2,hidden=64,ffn=128,heads=4,kv_heads=2,vocab=100"
        await pilot.press("e")
        app.screen.query_one(Input).value = words
        await pilot.press("enter")
        await pilot.pause()
        assert choice.shape.name == words
        assert len(choice.shapes) == count + 1
        await pilot.press("e", *"lama", "enter")
        await pilot.pause()
        assert choice.trouble.startswith("no model 'lama'")
        assert "no model 'lama'" in text_of(app)


async def test_close_goes_back_or_out():
    app = app_with()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(FitScreen())
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, FitScreen)
        assert app.is_running
        await pilot.press("q")
    assert app.return_code == 0


def test_it_opens_on_what_is_asked():
    shape = find_model("qwen2.5-7b")
    screen = FitScreen(shape, Training("qlora", context=1024), "rtx-5090")
    choice = screen.choice
    assert (choice.shape, choice.card.id) == (shape, "rtx-5090")
    assert choice.training.context == 1024


def test_cards_stand_by_memory_in_the_classes_of_buyers():
    choice = FitChoice()
    classes = [memory_class(card) for card in choice.cards]
    assert list(dict.fromkeys(classes)) == ["16", "24 - 32", "48 - 72", "80 and more"]
    found = {card.id: words for card, words in zip(choice.cards, classes, strict=True)}
    assert found["rtx-5090"] == "24 - 32"
    assert found["rtx-pro-5000-72"] == "48 - 72"
    assert found["rtx-pro-6000-ws"] == "80 and more"


@pytest.mark.parametrize("method", ["full-adamw", "full-offload", "qlora"])
def test_every_panel_at_every_size(method):
    choice = FitChoice(Training(method))
    choice.type_model("gpt2")
    for row in (choice.row, len(choice.shapes) - 1):
        choice.row = row
        panels = [panel(choice) for panel in (FitHeader, FitMatrix, FitDetail)]
        for width, height in [(1, 1), (20, 5), (56, 14), (80, 24), (110, 30), (200, 60)]:
            for panel in panels:
                for line in panel.draw(width, height)[:height]:
                    assert len(to_cells(line, width)) == width
