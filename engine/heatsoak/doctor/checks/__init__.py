"""The checks: every public function of every module here is one, found by itself.

A check is given the machine and yields its findings: at least one where it applies, so that what
was looked at and is fine can be told from what nobody looked at. Modules are read in the order of
their names.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from heatsoak.doctor.finding import Finding, ranked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from heatsoak.doctor.machine import Machine

    Check = Callable[[Machine], Iterator[Finding]]


def examine(machine: Machine) -> tuple[Finding, ...]:
    """Everything that the checks find, the gravest first."""
    return ranked(finding for check in checks() for finding in check(machine))


@cache
def checks() -> tuple[Check, ...]:
    """All checks."""
    found: list[Check] = []
    for entry in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{entry.name}")
        found += [
            function
            for name, function in vars(module).items()
            if inspect.isfunction(function)
            and function.__module__ == module.__name__
            and not name.startswith("_")
        ]
    return tuple(found)
