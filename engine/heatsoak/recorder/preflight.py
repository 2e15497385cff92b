"""Before a run: what its devices do not report, and which verdicts and figures that rules out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.session.warnings import limits_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from heatsoak.telemetry.device import DeviceInfo


def preflight(infos: Iterable[DeviceInfo]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Sentences on what will be impossible, each with the devices it is true of."""
    said: dict[str, list[str]] = {}
    for info in infos:
        for words in limits_of(info.missing):
            said.setdefault(words, []).append(info.device_id)
        if info.mig_parent_uuid is not None:
            words = (
                f"a MIG slice: power, temperature and clocks are those of the whole card "
                f"{info.mig_parent_uuid}"
            )
            said.setdefault(words, []).append(info.device_id)
    for words, device_ids in said.items():
        yield tuple(device_ids), words
