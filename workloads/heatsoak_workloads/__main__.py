"""Runs one workload: `python -P -m heatsoak_workloads NAME`.

The recorder describes the job in the environment: `HEATSOAK_PROGRESS_FD` (a pipe for the records),
`HEATSOAK_RECIPE` (JSON), `HEATSOAK_SEED`, `HEATSOAK_DEVICE` (`cpu` or an NVML UUID). Without them
the workload runs with its defaults and reports to nobody. SIGTERM ends it well.

Exit codes: 0 ended as asked, 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import ast
import importlib
import os
import sys
import traceback
from pathlib import Path

from heatsoak.clock import monotonic_s
from heatsoak.progress import Failed
from heatsoak_workloads._channel import Channel, StopRequest, WorkloadError

LONGEST_FAILURE = 400
"""Characters of a failure's one line."""


def main(arguments: list[str]) -> int:
    """Run the workload named in `arguments`; the exit code."""
    folder = Path(__file__).parent
    names = sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))
    if len(arguments) != 1 or arguments[0] not in names:
        sys.stderr.write(f"usage: python -P -m heatsoak_workloads {{{','.join(names)}}}\n")
        return 2
    name = arguments[0]
    if _runs_in_recorder(folder / f"{name}.py"):
        sys.stderr.write(f"{name} runs inside the recorder: heatsoak run -w {name}\n")
        return 2
    try:
        channel = Channel.from_environment(os.environ)
    except WorkloadError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    stop = StopRequest(channel)
    stop.listen()
    # Read when torch loads its OpenMP. Threads that spin for long while they wait fight every other
    # process for the cores: beside busy neighbours two cores trained two to four times as fast
    # with threads that soon sleep.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        _train(name, channel, stop)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever ends a training, the recorder is told
        return _fail(channel, error)
    return 0


def _train(name: str, channel: Channel, stop: StopRequest) -> None:
    try:
        shared = importlib.import_module("heatsoak_workloads._workload")
        workload = importlib.import_module(f"heatsoak_workloads.{name}")
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("torch", "lightning", "typing_extensions"):
            raise
        raise WorkloadError(
            f"{missing} is not installed in {sys.executable}; pip install 'heatsoak[train]'"
        ) from error
    job = shared.read_job(name, workload.WORKLOAD, os.environ)
    shared.prepare_process(job)
    shared.run(workload.build(job), job, channel, stop)


def _fail(channel: Channel, error: BaseException) -> int:
    """Tell the recorder in one line, stderr in full; the exit code."""
    if isinstance(error, WorkloadError):
        text = str(error)
        sys.stderr.write(f"{text}\n")
    else:
        first_line = next(iter(str(error).strip().splitlines()), "")
        text = f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__
        traceback.print_exception(error)
    channel.write(Failed(monotonic_s(), text[:LONGEST_FAILURE]))
    return 1


def _runs_in_recorder(path: Path) -> bool:
    """Whether the workload is for synthetic cards only, read as the catalogue reads it."""
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WORKLOAD":
            kinds: list[str] = ast.literal_eval(node.value)["kinds"]
            return kinds == ["synthetic"]
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
