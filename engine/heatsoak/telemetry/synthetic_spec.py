"""What a synthetic device is told to be and to suffer, word by word.

`synthetic:CARD[xN][+WORD[@T_S[:DURATION_S]]]...`: from session time `T_S` (0 if it is left out) for
`DURATION_S` (for ever if it is left out).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from heatsoak.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from heatsoak.telemetry.thermal_model import CardParameters

FaultKind = Literal[
    "lost", "hang", "stuck", "dropout", "throttle", "disturb",
    "blind",
    "light", "stall", "idle", "crash", "noise", "wander", "eval",
    "cap", "limit", "soft-limit", "hot-limit", "bins",
    "fan-stop", "fan-ceiling", "fan-steps", "fan-target", "fan-pause",
    "hot-case", "hot-room", "warm-air",
]  # fmt: skip

WORDS: Final[dict[FaultKind, str]] = {
    "lost": "the card falls off the bus",
    "hang": "a reading never comes back",
    "stuck": "every sensor repeats its last reading",
    "dropout": "no sensor reports anything",
    "blind": "temperature, fan, throttle reasons and limits are never reported",
    "disturb": "another job takes a fifth of the rate",
    "light": "the workload asks for a third of the card",
    "stall": "the counter stands still while the card works",
    "idle": "the workload stops without a word, and the card idles",
    "crash": "the workload fails",
    "noise": "the rate is noisy: 3 % within seconds",
    "wander": "the rate walks at random and has no mean",
    "eval": "the last 20 of every 200 s are an evaluation",
    "cap": "something outside holds power to 60 % of its limit",
    "limit": "the power limit is set to 70 %, and says so",
    "throttle": "the clock is held at 80 % for heat",
    "soft-limit": "slows itself to stay 3 °C below where it would settle",
    "hot-limit": "such a limit as a switch with 8 °C of hysteresis, its fan spent: a sawtooth",
    "bins": "the boost clock falls in bins of 15 MHz",
    "fan-stop": "the fan stands still",
    "fan-ceiling": "the fan never turns faster than 45 %",
    "fan-steps": "the fan turns in steps, with hysteresis",
    "fan-target": "the fan is driven to hold 60 °C",
    "fan-pause": "the fan stands still when cool",
    "hot-case": "a narrow case: 20 °C of its own, in half an hour",
    "hot-room": "a small room: 6 °C of its own, in an hour",
    "warm-air": "the air becomes 8 °C warmer",
}
"""What each word does."""

_NEED_A_TIME: Final = ("lost", "hang", "stuck", "dropout", "throttle", "disturb", "crash")
_LASTING: Final = ("lost", "hang", "crash", "blind")
_UNLOADING: Final = frozenset(("lost", "idle", "crash"))
_ON_SENSORS: Final = frozenset(("lost", "hang", "stuck", "dropout", "blind"))
FAN_WORDS: Final = frozenset(("fan-stop", "fan-ceiling", "fan-steps", "fan-target", "fan-pause"))
"""Words that a card without a fan cannot follow."""
LIMIT_WORDS: Final = frozenset(("soft-limit", "hot-limit"))
"""Words that set a temperature limit of their own."""
LIMIT_BELOW_C: Final = 3.0
"""Such a limit lies so far below the temperature at which the card would settle."""
EVAL_EVERY_S: Final = 200.0
EVAL_S: Final = 20.0

_CHANGES: Final[dict[FaultKind, Callable[[CardParameters], dict[str, Any]]]] = {
    "throttle": lambda _: {"clock_cap_frac": 0.8},
    "disturb": lambda p: {"rate_share": 0.8 * p.rate_share},
    "light": lambda p: {"load_frac": 0.35 * p.load_frac},
    "stall": lambda _: {"rate_share": 0.0},
    "eval": lambda p: {"rate_share": 0.0, "load_frac": 0.5 * p.load_frac},
    "noise": lambda _: {"rate_noise_frac": 0.03},
    "wander": lambda _: {"wander_frac": 0.002},
    "cap": lambda _: {"power_cap_frac": 0.6},
    "limit": lambda p: {"power_limit_w": 0.7 * p.power_limit_w},
    "soft-limit": lambda _: {"thermal_limit": "governor"},
    "hot-limit": lambda _: {"thermal_limit": "switch", "fan_max_pct": 45.0},
    "bins": lambda _: {"clock_bin_mhz": 15.0},
    "fan-stop": lambda _: {"fan_law": "stopped"},
    "fan-ceiling": lambda _: {"fan_max_pct": 45.0},
    "fan-steps": lambda _: {"fan_law": "steps"},
    "fan-target": lambda _: {"fan_law": "target"},
    "fan-pause": lambda _: {"fan_law": "pause"},
    "hot-case": lambda p: {"case_c_per_w": 20.0 / p.power_limit_w, "case_tau_s": 1800.0},
    "hot-room": lambda p: {"room_c_per_w": 6.0 / p.power_limit_w},
    "warm-air": lambda p: {"ambient_c": p.ambient_c + 8.0},
}


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that a synthetic card is told."""

    kind: FaultKind
    t_s: float
    """Session time at which it begins."""
    duration_s: float | None = None
    """None: it stays."""

    def is_active(self, t_s: float) -> bool:
        """Whether it is on at session time `t_s`."""
        if t_s < self.t_s:
            return False
        return self.duration_s is None or t_s < self.t_s + self.duration_s


@dataclass(frozen=True, slots=True)
class SyntheticSpec:
    """What `synthetic:CARD[xN][+WORD[@T_S[:DURATION_S]]]...` asks for."""

    card: str
    count: int
    faults: tuple[Fault, ...]


def parse_spec(text: str) -> SyntheticSpec:
    """The parts of one synthetic device specification.

    Raises:
        UsageError: it does not follow the grammar; the text says what would.
    """
    head, *tails = text.removeprefix("synthetic:").split("+")
    match = re.fullmatch(r"(?P<card>.+?)(?:x(?P<count>\d{1,2}))?", head)
    if match is None or text == "synthetic":
        raise UsageError(f"device {text!r}: name a card, as in synthetic:rtx-5090x2")
    count = int(match["count"] or 1)
    if not 1 <= count <= 64:
        raise UsageError(f"device {text!r}: between 1 and 64 cards, not {count}")
    return SyntheticSpec(match["card"], count, tuple(_parse_fault(text, tail) for tail in tails))


def _parse_fault(text: str, tail: str) -> Fault:
    number = r"(\d+(?:\.\d+)?)"
    match = re.fullmatch(rf"([a-z]+(?:-[a-z]+)*)(?:@{number}(?::{number})?)?", tail)
    if match is None:
        raise UsageError(
            f"device {text!r}: the word {tail!r} must read like lost@600, throttle@600:120 "
            "or hot-limit"
        )
    kinds: tuple[FaultKind, ...] = get_args(FaultKind)
    kind = next((known for known in kinds if known == match[1]), None)
    if kind is None:
        raise UsageError(f"device {text!r}: unknown word {match[1]!r}; known: {', '.join(kinds)}")
    if match[2] is None and kind in _NEED_A_TIME:
        raise UsageError(f"device {text!r}: {kind} needs a time; it must read like {kind}@600")
    if match[3] is not None and kind in _LASTING:
        raise UsageError(f"device {text!r}: {kind} lasts for ever and takes no duration")
    return Fault(kind, float(match[2] or 0.0), None if match[3] is None else float(match[3]))


def active_kinds(faults: Iterable[Fault], t_s: float) -> frozenset[FaultKind]:
    """The words in force at session time `t_s`; `eval` only while it is evaluated."""
    return frozenset(
        fault.kind
        for fault in faults
        if fault.is_active(t_s)
        and (fault.kind != "eval" or (t_s - fault.t_s) % EVAL_EVERY_S >= EVAL_EVERY_S - EVAL_S)
    )


def lasting_kinds(faults: Iterable[Fault]) -> frozenset[FaultKind]:
    """The words that decide where the card ends up: those that stay, without the sensors'."""
    return frozenset(
        fault.kind
        for fault in faults
        if fault.duration_s is None and fault.kind not in _ON_SENSORS | {"eval"}
    )


def is_unloaded(kinds: frozenset[FaultKind]) -> bool:
    """Whether one of the words takes the load off the card."""
    return not _UNLOADING.isdisjoint(kinds)


def changed(
    parameters: CardParameters, kinds: frozenset[FaultKind], limit_c: float
) -> CardParameters:
    """The card as it is under some words.

    Args:
        parameters: the card without them.
        kinds: the words.
        limit_c: the temperature limit that words of `LIMIT_WORDS` set.
    """
    for kind in sorted(kinds & _CHANGES.keys()):
        parameters = replace(parameters, **_CHANGES[kind](parameters))
    if not LIMIT_WORDS.isdisjoint(kinds):
        parameters = replace(parameters, temperature_limit_c=limit_c)
    return parameters
