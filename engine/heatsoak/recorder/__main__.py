"""`python -P -m heatsoak.recorder`: a plan on stdin, one line of JSON on stdout, then detached.

The line is `{"session", "id", "pid", "socket", "name", "notices"}` once the run records, or
`{"error", "code"}` when the plan is refused.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> int:
    """Record one run."""
    text = sys.stdin.read()
    # Whoever started us is not to wait for us, nor we to be its child; and nothing is loaded yet
    # that would mind a fork.
    if os.fork():
        return 0
    # BLAS would start a thread a core and reserve memory for each, for sums over a few hundred
    # numbers. Not in os.environ for longer than it takes: the workload must not inherit it.
    variables = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(dict.fromkeys(variables, "1"))
    from heatsoak.errors import HeatsoakError
    from heatsoak.recorder.entry import record

    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    try:
        record(text)
    except HeatsoakError as error:
        print(json.dumps({"error": str(error), "code": error.exit_code}), flush=True)  # noqa: T201
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
