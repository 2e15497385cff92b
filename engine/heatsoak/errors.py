"""The errors a user can cause or meet, each with the exit code of the command that meets it."""

from __future__ import annotations


class HeatsoakError(Exception):
    """An error told to the user in one line: what is wrong, and what would be right."""

    exit_code = 2
    """Exit code of a command that ends with this error."""


class UsageError(HeatsoakError):
    """Wrong usage or bad input: an unknown device, workload or protocol, an unreadable file."""

    exit_code = 2


class DeviceUnavailableError(HeatsoakError):
    """A device that was asked for cannot be measured: no driver, lost, in use by another run."""

    exit_code = 5
