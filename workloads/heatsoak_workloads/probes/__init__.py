"""Short programs that look at one thing, print one line of JSON, and end.

A file offers `probe(arguments: list[str]) -> dict`; adding a program is adding a file.
"""
