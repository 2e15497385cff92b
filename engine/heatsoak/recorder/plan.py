"""What a run was asked to do: made by the command line or the screen, read by the recorder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Plan:
    """One run as asked for; `recorder.client.start` checks it before anything is started."""

    devices: str
    """Devices as on the command line: `0,2`, `all`, `cpu`, `synthetic:rtx-5090x2`, UUIDs."""
    workload: str | None = None
    """Name of the workload; None: the default one of the devices."""
    recipe: dict[str, Any] = field(default_factory=dict)
    """Recipe options that were given, by field of `Recipe`; the rest gets its default."""
    protocol: str = "standard"
    out: str | None = None
    """Absolute path of the session file; None: a new file in the sessions folder."""
    force: bool = False
    """Whether an existing file at `out` may be replaced."""
    speed: float = 1.0
    """Session seconds a real second; only synthetic devices may have another than 1."""
    seed: int = 1
    """Seed of the workload and of synthetic devices."""
    name: str | None = None
    """What the user calls this session."""

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Plan:
        """The plan of `to_json`."""
        return Plan(**json.loads(text))
