"""What all areas of tests share: NVIDIA cards that are not there, and finished session files."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest


def _load(name, path):
    """A module beside the tests; pytest puts none of their folders on the path."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


nvml_emulator = _load("nvml_emulator", Path(__file__).parent / "nvml_emulator" / "emulator.py")
doctor_machines = _load("doctor_machines", Path(__file__).parent / "doctor_machines.py")
advised_sessions = _load("advised_sessions", Path(__file__).parent / "advised_sessions.py")


@pytest.fixture(scope="session")
def write_session():
    """write_session(folder, name, card, rate, ...) -> path of a finished session."""
    return advised_sessions.write_session


@pytest.fixture(scope="session", autouse=True)
def _folders_of_nobody(tmp_path_factory):
    """No test meets the settings or sessions of whoever runs it, nor starts a run there."""
    state = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("settings")))
        patch.setenv("XDG_STATE_HOME", str(state))
        yield
    left = [str(path) for path in state.rglob("*.heatsoak")]
    assert left == [], "a test recorded a session without a folder of its own"


@pytest.fixture(scope="session")
def nvml_libraries(tmp_path_factory):
    """Compiles the emulator once a session, and once more for each set of left-out symbols."""
    return nvml_emulator.Libraries(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def nvml_class():
    """For fixtures that outlive a test; a test takes `nvml`."""
    return nvml_emulator.Nvml


@pytest.fixture
def nvml(nvml_libraries, tmp_path):
    """An emulated NVML for the processes that the test starts; `nvml.tell(...)` says the cards."""
    with nvml_emulator.Nvml(nvml_libraries, tmp_path).borrowed() as emulator:
        emulator.tell("")
        yield emulator
