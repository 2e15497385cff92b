"""What a session says of the machine it was recorded on, in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heatsoak_tui.format import gibibytes

if TYPE_CHECKING:
    from collections.abc import Iterator


def environment_lines(environment: dict[str, Any]) -> Iterator[str]:
    """The environment of a session in a line or two, and what doctor warned of at its start."""
    host = environment.get("host")
    if host is None:
        return
    words = [
        str(host["name"]), str(host["cpu"]), f"{host['cores']} cores",
        gibibytes(host["memory_bytes"], 0), f"Linux {host['kernel']}",
    ]  # fmt: skip
    driver, training = environment.get("driver") or {}, environment.get("training") or {}
    if driver.get("version"):
        words.append(f"driver {driver['version']}")
    if training.get("torch"):
        words.append(f"torch {training['torch']}")
    if host.get("container"):
        words.append(f"in {host['container']}")
    yield f"machine  {', '.join(words)}"
    for finding in environment.get("findings") or []:
        whose = f"{finding['device_id']}: " if finding["device_id"] else ""
        yield f"! at the start: {whose}{finding['text']}"
