"""English text as tokens: a byte is a token, windows are drawn at random.

The text is the language reference that CPython carries in `pydoc_data.topics`, about 466 KB, so
that no machine has to fetch anything and every run of one Python trains on the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.utils.data import IterableDataset
from typing_extensions import override

from heatsoak_workloads._channel import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

VOCABULARY = 256
"""Tokens of the byte alphabet."""


def english_tokens() -> Tensor:
    """The whole text, a vector of `uint8`.

    Raises:
        WorkloadError: this Python was installed without `pydoc_data`.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise WorkloadError(
            "this Python has no pydoc_data, whose text is trained on; install its standard library"
        ) from error
    text = "\n\n".join(topics[name] for name in sorted(topics))
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


class RandomWindows(IterableDataset["Tensor"]):
    """Endless batches of windows of a text, each of (micro batch, context + 1) tokens.

    One more token than the context: inputs are all but the last, targets all but the first. A
    batch costs some microseconds, so no loader process is needed.
    """

    def __init__(
        self, text: Tensor, *, context: int, micro_batch: int, seed: int, is_pinned: bool
    ) -> None:
        """Draw from `text`.

        Args:
            text: a vector of `uint8` tokens.
            context: trained tokens a window.
            micro_batch: windows a batch.
            seed: of the generator; equal seeds, equal batches.
            is_pinned: whether batches lie in pinned memory, for copies that do not wait.

        Raises:
            WorkloadError: the text is shorter than one window.
        """
        longest = len(text) - 1
        if context > longest:
            raise WorkloadError(f"context {context} is longer than the text; at most {longest}")
        self._text = text
        self._offsets = torch.arange(context + 1)
        self._micro_batch = micro_batch
        self._seed = seed
        self._is_pinned = is_pinned

    @override
    def __iter__(self) -> Iterator[Tensor]:
        """Start over from the seed."""
        generator = torch.Generator().manual_seed(self._seed)
        past_end = len(self._text) - len(self._offsets) + 1
        while True:
            starts = torch.randint(past_end, (self._micro_batch, 1), generator=generator)
            windows = self._text[starts + self._offsets].long()
            yield windows.pin_memory() if self._is_pinned else windows


def trained_tokens(batch: Tensor) -> int:
    """Tokens that a batch of `RandomWindows` trains: all but the first of each window."""
    windows, length = batch.shape
    return windows * (length - 1)
