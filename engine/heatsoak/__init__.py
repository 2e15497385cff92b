"""heatsoak: soak training cards until thermal steady state and freeze what they sustain."""

__version__ = "0.1.0"
