"""What is trained: one description for workloads, the memory planner and the session file.

Standard library only, runs on Python 3.9.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

GPU_ONLY: dict[str, tuple[tuple[str, ...], str]] = {
    "precision": (("fp16", "tf32"), "bf16 or fp32"),
    "attention": (("cudnn", "efficient"), "auto, flash or math"),
}
"""By field: the values that only a GPU can compute with, and what a CPU takes instead."""


@dataclass(frozen=True)
class Recipe:
    """One training recipe, complete: every option has its value, none is left to a default."""

    workload: str
    """Name of the workload, as `heatsoak workloads` lists it."""
    size: str
    """Preset of the workload, such as `cpu-tiny` or `1B`."""
    context: int
    """Tokens a sequence; 0 where the workload has none."""
    micro_batch: int
    """Examples a forward pass."""
    accumulate: int
    """Forward passes an optimizer step."""
    precision: str
    """`bf16`, `fp16`, `tf32` or `fp32`."""
    attention: str
    """Attention kernel asked for: `auto`, `flash`, `cudnn`, `efficient`, `math`; `none` without."""
    compile: bool
    """Whether the model goes through `torch.compile`."""
    checkpointing: bool
    """Whether activations are recomputed in the backward pass."""
    optimizer: str
    """Optimizer, such as `adamw`."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Further options of this workload (`--set key=value`)."""

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Recipe:
        """The recipe of `to_json`."""
        return Recipe(**json.loads(text))

    @property
    def hash(self) -> str:
        """First 12 hex digits of the SHA-256 of the canonical JSON: equal recipes, equal hash."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]

    @property
    def cpu_problem(self) -> str | None:
        """Why a CPU cannot train this, in one line with what it can; None where it can."""
        for name, (values, instead) in GPU_ONLY.items():
            if getattr(self, name) in values:
                return f"{name} {getattr(self, name)} needs a GPU; the CPU takes {instead}"
        return None
