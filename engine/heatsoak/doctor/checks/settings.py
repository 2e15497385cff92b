"""How the cards are set: limits, clocks, modes. heatsoak changes none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.doctor.finding import Finding, ok, unknown
from heatsoak.profiles.cards import card_profiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heatsoak.doctor.machine import Machine

_LIMIT_W = 1.0
"""Limits differ when they differ by more."""
_CLOCK_MHZ = 1.0
_LAPTOP = "Laptop GPU"


def power_limit(machine: Machine) -> Iterator[Finding]:
    """The power limit in force against the card's default."""
    for card in machine.boards:
        info = card.info
        limit, default = info.power_limit_w, info.power_limit_default_w
        if limit is None:
            yield unknown("power-limit", "power limit", "the driver does not report it",
                          info.device_id)  # fmt: skip
        elif default is None:
            yield unknown("power-limit", "power limit",
                          f"it is {limit:.0f} W, and the driver does not say the default",
                          info.device_id)  # fmt: skip
        elif limit < default - _LIMIT_W:
            yield Finding(
                "power-limit", "warning", info.device_id, f"power limit {limit:.0f} W",
                f"its power limit is {limit:.0f} W, {1 - limit / default:.0%} below the default of "
                f"{default:.0f} W",
                "the figures are of the card at this limit, not of the card as it is sold",
                f"nvidia-smi -i {info.index} -pl {default:.0f} (as root) sets the default, if that "
                "is what you want to measure",
            )  # fmt: skip
        elif limit > default + _LIMIT_W:
            yield Finding(
                "power-limit", "warning", info.device_id, f"power limit {limit:.0f} W",
                f"its power limit is {limit:.0f} W, above the default of {default:.0f} W",
                "the figures are of a card that is given more than it is sold with",
                f"nvidia-smi -i {info.index} -pl {default:.0f} (as root) sets the default",
            )  # fmt: skip
        else:
            yield ok("power-limit", "power limit",
                     f"its power limit is the default, {limit:.0f} W", info.device_id)  # fmt: skip


def clocks(machine: Machine) -> Iterator[Finding]:
    """Clocks that somebody has set."""
    for card in machine.boards:
        info = card.info
        asked, default = info.application_clock_mhz, info.application_clock_default_mhz
        is_set = asked is not None and default is not None and abs(asked - default) > _CLOCK_MHZ
        if is_set:
            yield Finding(
                "clocks", "warning", info.device_id, f"clock set to {asked:.0f} MHz",
                f"its application clock is set to {asked:.0f} MHz; the default is {default:.0f}",
                "it neither boosts nor throttles as a card at stock clocks does",
                f"nvidia-smi -i {info.index} -rac (as root) takes the setting back",
            )  # fmt: skip
        elif info.sm_clock_is_held:
            yield Finding(
                "clocks", "warning", info.device_id, "clock held",
                "its clock is held by a setting (application or locked clocks)",
                "it neither boosts nor throttles as a card at stock clocks does",
                f"nvidia-smi -i {info.index} -rgc and -rac (as root) take the settings back",
            )  # fmt: skip
        elif info.sm_clock_is_held is None:
            why = "the driver does not say what holds the clock"
            yield unknown("clocks", "clocks set by somebody", why, info.device_id)
        else:
            yield ok("clocks", "stock clocks", "no setting holds its clock", info.device_id)


def persistence(machine: Machine) -> Iterator[Finding]:
    """Whether the driver stays loaded between uses."""
    for card in machine.boards:
        info = card.info
        if machine.confines.is_wsl or info.integrated:
            continue
        if info.persistence is None:
            yield unknown("persistence", "persistence mode", "the driver does not report it",
                          info.device_id)  # fmt: skip
        elif not info.persistence:
            yield Finding(
                "persistence", "warning", info.device_id, "persistence mode off",
                "the driver lets go of it whenever nobody uses it",
                "the first seconds of a run, and a power limit or clock set before it, which is "
                "forgotten in between",
                "run nvidia-persistenced, or nvidia-smi -pm 1 (as root)",
            )  # fmt: skip
        else:
            yield ok("persistence", "persistence mode", "persistence mode is on", info.device_id)


def ecc(machine: Machine) -> Iterator[Finding]:
    """Whether memory errors are corrected; professional cards ship with it switched off."""
    profiles = card_profiles()
    for card in machine.boards:
        info = card.info
        profile = profiles.get(info.card or "")
        if info.ecc_is_on:
            yield ok("ecc", "ECC on", "error correction of its memory is on", info.device_id)
        elif info.ecc_is_on is False:
            yield Finding(
                "ecc", "info", info.device_id, "ECC off",
                "error correction of its memory is off: a setting, not a lack",
                "a memory error in a long training goes unnoticed; with GDDR6, ECC takes a "
                "sixteenth of the memory and some bandwidth, so figures do not carry over",
                f"nvidia-smi -i {info.index} -e 1 (as root) and a reboot switch it on",
            )  # fmt: skip
        else:
            has = f" ({profile.facts['ecc'].value})" if profile and "ecc" in profile.facts else ""
            yield Finding(
                "ecc", "info", info.device_id, "no ECC mode",
                f"the card reports no error correction that could be switched{has}",
            )  # fmt: skip


def mig(machine: Machine) -> Iterator[Finding]:
    """Whether the card is split."""
    for card in machine.boards:
        info = card.info
        if info.mig_mode:
            yield Finding(
                "mig", "info", info.device_id, "split by MIG",
                "it is split into MIG slices, of which a program can use one",
                "power, temperature and clocks are those of the whole card, so a slice has no "
                "perf/W while another is busy",
                f"name a slice (heatsoak devices), or nvidia-smi -i {info.index} -mig 0 (as root)",
            )  # fmt: skip
        elif info.mig_mode is False:
            yield ok("mig", "MIG off", "MIG is off", info.device_id)


def laptop(machine: Machine) -> Iterator[Finding]:
    """Who decides how much power a laptop's card gets."""
    for card in machine.boards:
        info = card.info
        if not info.name.endswith(_LAPTOP):
            continue
        does = "runs" if machine.host.has_powerd else "does not run"
        yield Finding(
            "laptop", "info", info.device_id, "a laptop's card",
            f"it is a laptop's card, whose power the firmware decides, and nvidia-powerd {does}",
            "figures hang on the laptop's mode, its charger and nvidia-powerd, which moves some "
            "ten watts",
            "measure plugged in, in the mode you work in, and compare only with the same",
        )  # fmt: skip
