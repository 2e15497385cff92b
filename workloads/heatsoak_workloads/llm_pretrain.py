"""Pre-training of a decoder-only transformer on English text, token by token (a byte is a token).

The text is half a megabyte, so a long soak learns it by heart: the loss falls for real, and keeps
falling, but says nothing about a language model. What is measured is the work, not the model.
"""

from __future__ import annotations

WORKLOAD = {
    "version": 1,
    "unit": "tokens",
    "title": "Pre-training of a decoder-only transformer (Llama-like) on English text",
    "archetype": "llm-pretraining",
    "kinds": ["nvidia", "cpu"],
    # memory_gib: 16 B a parameter (weights, gradients and two AdamW moments in 32 bit), 2 B for
    # the 16-bit copy under autocast, the layers' activations at the recipe below, and 1 GiB for
    # the CUDA context and libraries.
    "sizes": {
        "cpu-tiny": {
            "layers": 4,
            "width": 256,
            "heads": 8,
            "kv_heads": 4,
            "ffn": 704,
            "vocabulary": 256,
            "memory_gib": 1.0,
            "kinds": ["cpu", "nvidia"],
            "recipe": {"context": 256, "micro_batch": 4, "precision": "bf16"},
        },
        "125M": {
            "layers": 20,
            "width": 768,
            "heads": 12,
            "kv_heads": 4,
            "ffn": 2048,
            "vocabulary": 256,
            "memory_gib": 9.0,
            "kinds": ["nvidia", "cpu"],
            "recipe": {"context": 2048, "micro_batch": 4},
        },
        # The shape of Qwen2.5-0.5B.
        "350M": {
            "layers": 24,
            "width": 896,
            "heads": 14,
            "kv_heads": 2,
            "ffn": 4864,
            "vocabulary": 256,
            "memory_gib": 16.0,
            "kinds": ["nvidia", "cpu"],
            "recipe": {"context": 2048, "micro_batch": 4},
        },
        # The shape of Llama-3.2-1B.
        "1B": {
            "layers": 16,
            "width": 2048,
            "heads": 32,
            "kv_heads": 8,
            "ffn": 8192,
            "vocabulary": 256,
            "memory_gib": 26.0,
            "kinds": ["nvidia"],
            "recipe": {"context": 2048, "micro_batch": 2},
        },
    },
    "defaults": {
        "size": "cpu-tiny",
        "context": 2048,
        "micro_batch": 4,
        "accumulate": 1,
        "precision": "bf16",
        "attention": "auto",
        "compile": False,
        "checkpointing": False,
        "optimizer": "adamw",
        "settings": {},
    },
    "options": {
        "context": "int",
        "micro_batch": "int",
        "accumulate": "int",
        "precision": ["bf16", "fp16", "tf32", "fp32"],
        "attention": ["auto", "flash", "cudnn", "efficient", "math"],
        "compile": [False, True],
        "checkpointing": [False, True],
        "optimizer": ["adamw"],
        "learning_rate": "float",
    },
}
