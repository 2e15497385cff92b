"""`heatsoak devices` and others where the NVIDIA driver is not well: a sentence, no traceback."""

from __future__ import annotations

import json

import pytest

WORDS = {
    "no library": "no NVIDIA driver",
    "without nvmlInitWithFlags": "too old",
    "init DRIVER_NOT_LOADED": "kernel driver is not loaded",
    "init LIB_RM_VERSION_MISMATCH": "reboot",
    "init NO_PERMISSION": "no permission",
    "init UNKNOWN": "unknown error",
    "driver 580.95.05": "finds no card",
}
"""What the user reads, by scenario."""
OTHER_CODES = [1, 2, 3, 6, 7, 8, 10, 11, 14, 15, 16, 17, 19, 20, 27, 28]
COMMANDS = {
    "devices": ["devices"],
    "list": ["devices", "--json"],
    "doctor": ["doctor", "--quick", "--json"],
    "run": ["run", "-d", "0", "--headless", "--protocol", "smoke"],
}
PLAY = """
import contextlib, io, json, os
from heatsoak_tui.cli import main
path = os.environ["NVML_EMULATOR_SCENARIO"]

def answers(scenario, commands):
    with open(path + ".new", "w") as file:
        file.write(scenario + "\\n")
    os.replace(path + ".new", path)
    found = {}
    for name, words in commands.items():
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
        found[name] = [code, out.getvalue(), err.getvalue()]
    return found
"""


class NoLibrary:
    """Stands in for the builds of the emulator: a file that is no library, as if there were none.

    The loader stops at it, whatever this machine has installed.
    """

    def __init__(self, folder):
        self._folder = folder
        (folder / "libnvidia-ml.so.1").touch()

    def library(self, hidden):
        return self._folder


@pytest.fixture(scope="module")
def answers(nvml_libraries, nvml_class, tmp_path_factory):
    """Of each command under each scenario: exit code, stdout, stderr."""
    found = {}
    # A library is loaded once a process, so what has another library has another process.
    for group in (["no library"], ["without nvmlInitWithFlags"], list(WORDS)[2:]):
        libraries, folder = nvml_libraries, tmp_path_factory.mktemp("driver")
        scenarios = [name if name != "no library" else "" for name in group]
        if group == ["no library"]:
            libraries = NoLibrary(folder)
        with nvml_class(libraries, folder).borrowed() as nvml:
            nvml.tell(scenarios[0])
            got = nvml.run(
                f"{PLAY}\nprint(json.dumps([answers(s, {COMMANDS!r}) for s in {scenarios!r}]))"
            )
        found |= zip(group, got, strict=True)
    return found


@pytest.mark.parametrize("scenario", WORDS)
def test_the_list_is_told_with_one_sentence_on_what_is_missing(answers, scenario):
    words = WORDS[scenario]
    code, out, err = answers[scenario]["devices"]
    assert (code, err) == (0, "")
    assert "cpu" in out
    assert sum(words in line for line in out.splitlines()) == 1
    code, out, err = answers[scenario]["list"]
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert words in document["nvidia_problem"]
    assert [device["kind"] for device in document["devices"]] == ["cpu"]


@pytest.mark.parametrize("scenario", WORDS)
def test_a_run_on_a_card_is_refused_with_the_same_sentence(answers, scenario):
    code, out, err = answers[scenario]["run"]
    assert (code, out) == (5, "")
    assert len(err.splitlines()) == 1
    assert WORDS[scenario] in err


@pytest.mark.parametrize("scenario", WORDS)
def test_the_doctor_says_the_same_sentence_and_looks_at_the_rest(answers, scenario):
    words = WORDS[scenario]
    code, out, err = answers[scenario]["doctor"]
    assert (code, err) == (0, "")
    findings = json.loads(out)["findings"]
    (told,) = (finding for finding in findings if words in f"{finding['title']} {finding['text']}")
    assert told["severity"] == ("info" if scenario == "no library" else "warning")
    assert any(finding["device_id"] == "cpu" for finding in findings)


def test_every_other_code_of_a_start_is_a_sentence_too(nvml):
    found = nvml.run(
        f"""{PLAY}
commands = {{"list": ["devices", "--json"]}}
print(json.dumps([answers(f"init {{code}}", commands)["list"] for code in {OTHER_CODES}]))
"""
    )
    problems = [json.loads(out)["nvidia_problem"] for _, out, _ in found]
    assert {code for code, _, _ in found} == {0}
    assert all("the NVIDIA driver does not start: " in problem for problem in problems)
    assert all("\n" not in problem for problem in problems)
    assert len(set(problems)) == len(OTHER_CODES)


@pytest.mark.parametrize(
    ("command", "code"), [(["devices"], 0), (["doctor", "--quick", "-d", "0"], 5)]
)
def test_the_installed_command_says_it_and_shows_no_traceback(nvml, command, code):
    nvml.tell("init DRIVER_NOT_LOADED\n")
    done = nvml.heatsoak(*command)
    assert done.returncode == code
    assert "kernel driver is not loaded" in " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in done.stderr


def test_a_card_that_cannot_be_read_is_told_beside_those_that_can(nvml):
    nvml.play("one-card", "card 1 like rtx-5090", "fail 1 * GPU_IS_LOST")
    done = nvml.heatsoak("devices", "--json")
    assert done.returncode == 0
    ids = [device["device_id"] for device in json.loads(done.stdout)["devices"]]
    assert ids == ["0", "cpu"]
    assert "Traceback" not in done.stderr
