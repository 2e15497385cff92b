"""The workload of synthetic cards: arithmetic that follows the card's clock, no training at all.

It runs inside the recorder (see DECISIONS.md, 1), so this file only describes it for the catalogue.
"""

from __future__ import annotations

WORKLOAD = {
    "version": 1,
    "unit": "tokens",
    "title": "Arithmetic that follows a synthetic card's clock; measures nothing real",
    "archetype": "demonstration",
    "kinds": ["synthetic"],
    "sizes": {
        "125M": {"parameters": 125e6, "memory_gib": 9.5, "kinds": ["synthetic"]},
        "350M": {"parameters": 350e6, "memory_gib": 20.0, "kinds": ["synthetic"]},
        "1B": {"parameters": 1e9, "memory_gib": 26.3, "kinds": ["synthetic"]},
    },
    "defaults": {
        "size": "1B",
        "context": 2048,
        "micro_batch": 2,
        "accumulate": 1,
        "precision": "bf16",
        "attention": "none",
        "compile": False,
        "checkpointing": False,
        "optimizer": "none",
        "settings": {},
    },
    "options": {
        "precision": ["bf16"],
        "attention": ["none"],
        "compile": [False],
        "checkpointing": [False],
        "optimizer": ["none"],
        "context": "int",
        "micro_batch": "int",
        "accumulate": "int",
    },
}
