"""Everything behind a result: how it was measured, every figure's formula and inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak.economics import scaling
from heatsoak.economics.formulas import FORMULAS
from heatsoak.profiles.money import TERMS
from heatsoak_tui.format import (
    DASH,
    THIN,
    as_entered,
    input_words,
    percent,
    short_name,
    significant,
    wrap,
)
from heatsoak_tui.widgets.canvas import left_right
from heatsoak_tui.widgets.money_words import (
    figure_words,
    job_money,
    money_rows,
    origin_words,
    reference_words,
    scaling_rows,
    spent_row,
)
from heatsoak_tui.widgets.result_words import context_rows, headline, number_rows
from heatsoak_tui.widgets.run_canvas import RunCanvas

if TYPE_CHECKING:
    from heatsoak_tui.widgets.canvas import Line
    from heatsoak_tui.widgets.findings import Findings
    from heatsoak_tui.widgets.money_words import Data
    from heatsoak_tui.widgets.run_canvas import Shown

INDENT = 4
LABEL = 26
RATIOS = (
    "units_per_s_per_price", "units_per_s_per_w", "units_per_joule", "kwh_per_million",
    "energy_per_million", "capital_per_million",
)  # fmt: skip


class ResultInputs(RunCanvas):
    """Sections one below the other, scrolled by lines and by sections."""

    def __init__(self, shown: Shown, found: Findings, *, id: str | None = None) -> None:
        super().__init__(shown, id=id)
        self.found = found
        self.top = 0
        """The first line that is shown."""
        self._starts: list[int] = []

    def scroll_lines(self, step: int) -> None:
        """Some lines up or down."""
        self.top += step
        self.repaint()

    def next_section(self, step: int) -> None:
        """The next or previous section at the top."""
        after = [start for start in self._starts if start > self.top]
        before = [start for start in self._starts if start < self.top]
        if step > 0 and after:
            self.top = after[0]
        elif step < 0:
            self.top = before[-1] if before else 0
        self.repaint()

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """What is in sight, and how much there is below."""
        lines = self._lines(width)
        self.top = max(0, min(self.top, len(lines) - height))
        shown = lines[self.top : self.top + height]
        hidden = len(lines) - self.top - height
        if hidden > 0 and shown:
            more: Line = [(f"↓ {hidden + 1} more lines ", "muted")]
            shown[-1] = left_right([], more, width)
        return shown

    def _lines(self, width: int) -> list[Line]:
        view, device_id = self.shown.view, self.shown.device_id
        if device_id is None or device_id not in view.device_ids:
            return []
        lines = headline(view, device_id, width)
        self._starts = [len(lines) + 1]
        lines += _title(f"MEASURED on {short_name(view.device(device_id).name)}")
        lines += [line for _, line in number_rows(view, [device_id], [])]
        lines += [line for _, line in context_rows(view, self.found.document, device_id, width)]
        document = self.found.document
        entry = job_money(document, device_id)
        if document is None or entry is None:
            return lines
        for title, body in _sections(document, entry, width):
            self._starts.append(len(lines) + 1)
            lines += _title(title)
            lines += body
        return lines


def _title(text: str) -> list[Line]:
    return [[], [(f"  {text}", "accent")]]


def _sections(document: Data, entry: Data, width: int) -> list[tuple[str, list[Line]]]:
    """Every figure there is, with formula, then all inputs."""
    found: list[tuple[str, list[Line]]] = []

    def section(name: str, body: list[Line]) -> None:
        formula = FORMULAS[name]
        text = f"= {formula.formula}"
        lines = [*body, *_text(text, width, "text"), *_text(f"({formula.source})", width, "muted")]
        found.append((formula.title, lines))

    for name in RATIOS:
        figure = entry[name]
        if figure is not None:
            section(name, [_pair(figure["unit"], *figure_words(figure))])
    if entry["tco"] is not None:
        section("tco", _tco_lines(entry["tco"], width))
    if (total := entry["total_per_million"]) is not None:
        low, high = significant(total["low"]), significant(total["high"])
        value = _pair(total["unit"], significant(total["mean"]), f"({low} to {high})")
        section("total_per_million", [value])
    rows = money_rows(entry)
    for name, starts in (("cloud", ("cloud",)), ("faults", ("downtime", "ECC"))):
        if entry[name] is not None:
            some = [row for row in rows if row.label.startswith(starts)]
            lines: list[Line] = []
            for row in some:
                lines.append(_pair(row.label, row.value, row.doubt))
                lines += _text(row.note, width, "muted")
            section(name, lines)
    spent = [
        spent_row(label, entry[name], entry["unit"])
        for label, name in (("this run", "run"), ("one epoch", "epoch"))
        if entry[name] is not None
    ]
    if spent:
        section("spent", [_pair(row.label, row.value, row.note) for row in spent])
    if scaled := scaling_rows(document, entry):
        lines = [_pair(row.label, row.value, row.doubt) for row in scaled]
        for row in scaled:
            lines += _text(row.note, width, "muted")
        lines += _text(f"the article: {_article()}", width, "muted")
        section("scaling", lines)
    found.append(("inputs", _input_lines(document, entry, width)))
    return found


def _tco_lines(tco: Data, width: int) -> list[Line]:
    low, high = significant(tco["low"]), significant(tco["high"])
    years = f"{tco['unit']} in {as_entered(tco['years'])} years"
    lines = [_pair(years, significant(tco["mean"]), f"({low} to {high})")]
    for name, amount in tco["parts"].items():
        if amount:
            shown = as_entered(amount) if name == "price" else significant(amount)
            lines.append(_pair(f"  {name.replace('_', ' ')}", shown, ""))
    if tco["idle_w"] is None:
        lines += _text("idle energy is not counted: no reading before the load", width, "warn")
    else:
        how = "read before the load" if tco["is_idle_read"] else "as entered"
        lines += _text(f"idle power {significant(tco['idle_w'])} W, {how}", width, "muted")
    lines += _text(
        "band: price, kWh price, utilisation and residual value each anywhere within 20 %, and the "
        "interval of the measured power; each alone:",
        width,
        "muted",
    )
    widest = max((abs(s["at_high"] - s["at_low"]) for s in tco["tornado"]), default=0.0)
    for swing in tco["tornado"]:
        lines.append(_swing_line(swing, widest, width))
    return lines


def _swing_line(swing: Data, widest: float, width: int) -> Line:
    """`price     2 320 to 3 480    3 850 ████████ 5 010`."""
    values = sorted((swing["at_low"], swing["at_high"]))
    room = max(4, min(30, width - 60))
    share = abs(values[1] - values[0]) / widest if widest else 0.0
    bar = "█" * max(1, round(room * share)) if share else ""
    term = TERMS["invoice" if swing["input"] == "price" else swing["input"]]
    shown = percent if term.unit == "frac" else significant
    ends = f"{shown(swing['low_value'])} to {shown(swing['high_value'])}"
    return [
        (f"{'':{INDENT}}{term.label:<16}", "text"),
        (f"{ends:<22}", "muted"),
        (f"{significant(values[0]):>9} ", "strong"),
        (bar, "power"),
        (f" {significant(values[1])}", "strong"),
    ]


def _input_lines(document: Data, entry: Data, width: int) -> list[Line]:
    lines: list[Line] = []
    for used in entry["inputs"]:
        label = TERMS[used["name"]].label + (f" {used['card']}" if used["card"] else "")
        role = "text" if used["origin"] in ("yours", "session") else "warn"
        value = input_words(used["value"], used["unit"])
        lines.append([(f"{'':{INDENT}}{label:<{LABEL}}", "text"), (f"{value:>16}  ", "strong")])
        lines += _text(origin_words(used), width, role, INDENT + 2)
    if reference := reference_words(entry):
        lines += _text(reference, width, "muted")
    for needed in entry["needed"]:
        lines += _text(f"to enter: {needed}", width, "warn")
    for idle in document["economics"]["idle"]:
        power = f"{significant(idle['power_w'])} W"
        lines += _text(f"idle beside it: {idle['name']}, {power}, charged to none", width, "muted")
    stored = document["economics"]["stored"]
    lines += _text(
        f"prices last stored in the session: {stored['created_utc']}" if stored
        else "no prices are stored in the session", width, "muted",
    )  # fmt: skip
    return lines or [[(f"{'':{INDENT}}{DASH}", "muted")]]


def _pair(label: str, value: str, doubt: str) -> Line:
    return [
        (f"{'':{INDENT}}{label:<{LABEL}}", "text"),
        (f"{value:>16}", "strong"),
        (f"  {doubt}", "muted"),
    ]


def _text(text: str, width: int, role: str, indent: int = INDENT) -> list[Line]:
    # A thin space is white space too, and must not be broken at.
    room = width - indent - 1
    words = wrap(text.replace(THIN, "\0"), room, 9)
    return [[(" " * indent + line.replace("\0", THIN), role)] for line in words]


def _article() -> str:
    words: list[str] = []
    for cards, figure, note in scaling.ARTICLE:
        words.append(f"{cards} {figure}" + (f" ({note})" if note else ""))
    return "; ".join(words)
