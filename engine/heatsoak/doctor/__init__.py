"""What on this machine would spoil a measurement, why, and how to mend it."""

from __future__ import annotations

from heatsoak.doctor.checks import examine
from heatsoak.doctor.finding import Finding
from heatsoak.doctor.look import look
from heatsoak.doctor.machine import Machine
from heatsoak.doctor.record import environment, environment_at_start

__all__ = ["Finding", "Machine", "environment", "environment_at_start", "examine", "look"]
