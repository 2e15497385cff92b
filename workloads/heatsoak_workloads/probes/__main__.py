"""Runs one probe: `python -P -m heatsoak_workloads.probes NAME [ARGUMENT...]`."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run the probe named in `arguments`; the exit code."""
    names = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("_"))
    if not arguments or arguments[0] not in names:
        sys.stderr.write(f"usage: python -P -m heatsoak_workloads.probes {{{','.join(names)}}}\n")
        return 2
    module = importlib.import_module(f"heatsoak_workloads.probes.{arguments[0]}")
    print(json.dumps(module.probe(arguments[1:])), flush=True)  # noqa: T201 - the answer
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
