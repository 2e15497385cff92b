"""The emulated libnvidia-ml.so.1 for tests: compiled once a session, told what to answer."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).resolve().parent
MODELS = FOLDER / "models"
SCENARIOS = FOLDER / "scenarios"
SOURCES = sorted(FOLDER.glob("*.c"))
LIBRARY = "libnvidia-ml.so.1"


def compiler() -> list[str]:
    """The system's C compiler, or the one that the PyPI package ziglang brings."""
    for name in ("cc", "gcc", "clang"):
        if (found := shutil.which(name)) is not None:
            return [found]
    if find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise RuntimeError(
        "the NVML emulator needs a C compiler: install gcc, or `pip install ziglang`"
    )


class Libraries:
    """Builds of the emulator in a folder of their own, one for each set of left-out symbols."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._objects: list[Path] = []
        self._built: dict[frozenset[str], Path] = {}
        self.compiler = compiler()
        """Command of the C compiler."""
        self.warnings = ""
        """What it said."""

    def library(self, hidden: frozenset[str] = frozenset()) -> Path:
        """The folder of a library that lacks the symbols in `hidden`."""
        if not self._objects:
            self._compile()
        if hidden not in self._built:
            folder = self._folder / f"library-{len(self._built)}"
            folder.mkdir()
            local = "".join(f"{name}; " for name in sorted(hidden))
            # An exact name comes before a pattern, and no helper of ours is seen outside.
            (folder / "symbols.map").write_text(f"{{ global: nvml*; local: {local}*; }};\n")
            self._call(
                "-shared",
                "-pthread",
                f"-Wl,--version-script={folder / 'symbols.map'}",
                f"-Wl,-soname,{LIBRARY}",
                *map(str, self._objects),
                "-lm",
                "-o",
                str(folder / LIBRARY),
            )
            self._built[hidden] = folder
        return self._built[hidden]

    def _compile(self) -> None:
        flags = ["-std=c11", "-Wall", "-Wextra", "-O1", "-fPIC", "-pthread"]
        for source in SOURCES:
            built = self._folder / f"{source.stem}.o"
            self.warnings += self._call(*flags, "-c", str(source), "-o", str(built))
            self._objects.append(built)

    def _call(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self.compiler, *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stderr


class Nvml:
    """An NVML for every process that a test starts: it answers what it was last told."""

    def __init__(self, libraries: Libraries, folder: Path) -> None:
        self.libraries = libraries
        self.scenario = folder / "nvml.scenario"
        """The file that is read again whenever it changes."""
        self.journal = folder / "nvml.journal"
        """A line `CARD FUNCTION[:ARGUMENT...]` for each call, from `keep_journal` on."""
        self._is_noted = False
        self._hidden: frozenset[str] = frozenset()

    def keep_journal(self) -> None:
        """Note down what processes ask that start from now on."""
        self._is_noted = True

    def calls(self) -> list[tuple[int, str]]:
        """What was asked so far: the card (-1: none) and the function with its arguments."""
        lines = [line.split() for line in self.journal.read_text().splitlines()]
        return [(int(card), key) for card, key in lines]

    def tell(self, scenario: str) -> None:
        """Answer by this scenario from now on, in running processes too.

        A statement `without SYMBOL...` only has an effect on processes that start later.
        """
        hidden: list[str] = []
        for line in scenario.splitlines():
            verb, *rest = line.partition("#")[0].split() or [""]
            if verb == "without":
                hidden += rest
        self._hidden = frozenset(hidden)
        new = self.scenario.with_suffix(".new")
        new.write_text(scenario)
        new.replace(self.scenario)
        os.environ.update(self.environment)

    def play(self, name: str, *more: str) -> None:
        """Answer by the scenario of that name in `scenarios/`, with more statements behind it."""
        self.tell("\n".join([self.read(name), *more, ""]))

    def read(self, name: str) -> str:
        """The text of a scenario in `scenarios/`."""
        return (SCENARIOS / f"{name}.scenario").read_text()

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[Nvml]:
        """This NVML in the environment of the test's process until the end of the block."""
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            yield self
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to load the emulator."""
        return {
            "LD_LIBRARY_PATH": str(self.libraries.library(self._hidden)),
            "NVML_EMULATOR_SCENARIO": str(self.scenario),
            "NVML_EMULATOR_MODELS": str(MODELS),
            "NVML_EMULATOR_JOURNAL": str(self.journal) if self._is_noted else "",
        }

    def run(self, code: str, scenario: str | None = None) -> object:
        """What `code` prints as JSON, in a process of its own."""
        if scenario is not None:
            self.tell(scenario)
        done = self.call(sys.executable, "-P", "-c", code)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def heatsoak(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command `heatsoak` with these arguments."""
        return self.call(str(Path(sys.executable).with_name("heatsoak")), *arguments)

    def call(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Any command, under this NVML."""
        return subprocess.run(
            command,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
