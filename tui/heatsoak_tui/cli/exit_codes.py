"""The exit codes in words, for the help."""

from __future__ import annotations

EXIT_CODES = """\
exit codes:
  0    steady and frozen, or the command did what it says
  2    wrong usage or bad input
  3    ended without steady state
  4    the workload failed
  5    a device was lost or is unavailable
  130  interrupted: by the user, or because it could not be recorded to its end"""
