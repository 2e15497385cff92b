"""The judge: numbers in, verdicts out. Pure: no thread, no clock, no input or output."""
