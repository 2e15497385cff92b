"""Devices that do not answer, or only with errors: told, waited for, and at last given up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

SILENT_S = 5.0
"""A device whose reading has not returned for so long (session seconds, at least as many as a real
second has under `--speed`) is silent."""
GIVEN_UP_S = 300.0
"""So long (session seconds) a silent device is waited for; a call that comes back later than that
never has, in the reports we know."""
GIVEN_UP_REAL_S = 10.0
"""Under `--speed` at least so many real seconds: a busy machine is no lost card."""

Kind = Literal["silent", "given-up", "unreadable"]


@dataclass(frozen=True, slots=True)
class Change:
    """What is news about a device that does not answer as it should."""

    device_id: str
    kind: Kind
    text: str


class Silence:
    """Which devices are silent or unreadable now.

    Silent: the driver's call does not return, and nobody can say what the device does; its job is
    not judged meanwhile. Unreadable: every query returns an error; the workload may well go on.
    """

    def __init__(self, speed: float) -> None:
        """Begin with devices that answer, at `speed` session seconds a real second."""
        self.limit_s = max(SILENT_S, speed)
        self.given_up_s = max(GIVEN_UP_S, GIVEN_UP_REAL_S * speed)
        self.devices: set[str] = set()
        """Devices that are silent now."""
        self._errors: dict[str, tuple[float, str]] = {}
        self._unreadable: set[str] = set()

    @property
    def unheard(self) -> set[str]:
        """Devices of which no reading is to be waited for now."""
        return self.devices | self._errors.keys()

    def answered(self, device_id: str) -> None:
        """A reading came."""
        self._errors.pop(device_id, None)

    def erred(self, t_s: float, device_id: str, text: str) -> None:
        """A reading failed as a whole, at session time `t_s`."""
        since_s, _ = self._errors.get(device_id, (t_s, ""))
        self._errors[device_id] = (since_s, text)

    def look(
        self, t_s: float, silent_s: Mapping[str, float], gone: Collection[str]
    ) -> Iterator[Change]:
        """What has changed by session time `t_s`.

        Args:
            t_s: now.
            silent_s: seconds since the last call of each device returned.
            gone: devices that are lost, of which nothing is awaited.
        """
        for device_id, age_s in silent_s.items():
            if device_id in gone:
                self.devices.discard(device_id)
                continue
            if age_s > self.given_up_s:
                self.devices.discard(device_id)
                what = f"no answer for {age_s:.0f} s: a call of its driver does not return"
                yield Change(device_id, "given-up", what)
            elif age_s > self.limit_s and device_id not in self.devices:
                self.devices.add(device_id)
                text = f"{device_id} has not answered for {age_s:.0f} s; it is not judged meanwhile"
                yield Change(device_id, "silent", text)
            elif age_s <= self.limit_s and device_id in self.devices:
                self.devices.discard(device_id)
                yield Change(device_id, "silent", f"{device_id} answers again")
        yield from self._look_at_errors(t_s, gone)

    def _look_at_errors(self, t_s: float, gone: Collection[str]) -> Iterator[Change]:
        for device_id, (since_s, text) in self._errors.items():
            is_told = device_id in self._unreadable or device_id in gone
            if t_s - since_s > self.limit_s and not is_told:
                self._unreadable.add(device_id)
                yield Change(
                    device_id,
                    "unreadable",
                    f"{device_id} cannot be read any more ({text}); its workload goes on and is "
                    "judged on what is left. In a container that is often a systemd reload that "
                    "took its devices away: start the container anew, after this run",
                )
        for device_id in sorted(self._unreadable - self._errors.keys()):
            self._unreadable.discard(device_id)
            if device_id not in gone:
                yield Change(device_id, "unreadable", f"{device_id} can be read again")
