"""What a fresh interpreter imports: the promises that import-linter cannot see."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "lightning", "textual", "rich", "numpy", "psutil", "yaml", "pynvml", "sqlite3"}


def modules_after(code: str) -> set[str]:
    """Top-level modules in `sys.modules` after running `code` in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print('\\n'.join(sys.modules))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {line.partition(".")[0] for line in done.stdout.splitlines()}


def test_help_imports_nothing_heavy():
    code = (
        "from heatsoak_tui.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as e: assert e.code == 0"
    )
    assert not HEAVY & modules_after(code)


@pytest.mark.parametrize(
    "module",
    ["heatsoak.recorder.__main__", "heatsoak.recorder.client", "heatsoak.session.result"],
)
def test_engine_imports_no_screen_and_no_torch(module):
    loaded = modules_after(f"import importlib; importlib.import_module({module!r})")
    assert not {"torch", "lightning", "textual", "rich", "heatsoak_workloads"} & loaded


def test_screen_imports_no_torch():
    loaded = modules_after("import heatsoak_tui.app")
    assert not {"torch", "lightning", "heatsoak_workloads"} & loaded


def test_what_a_child_needs_is_standard_library_only():
    code = "import heatsoak.progress, heatsoak.recipe, heatsoak.units, heatsoak.clock"
    loaded = modules_after(code) - {"heatsoak"}
    own = {name for name in loaded if not name.startswith("_")}
    third_party = own - set(sys.stdlib_module_names) - {"sitecustomize", "usercustomize"}
    # An editable install adds path hooks of its own; they are not ours to judge.
    assert {name for name in third_party if "editable" not in name} == set()


def test_no_file_grows_beyond_600_lines():
    long = {
        str(path.relative_to(ROOT)): count
        for folder in ("engine", "tui", "workloads", "tests", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 600
    }
    assert long == {}


@pytest.mark.parametrize("name", ["progress", "recipe", "units", "clock"])
def test_what_a_child_needs_parses_as_python_3_9(name):
    source = (ROOT / "engine" / "heatsoak" / f"{name}.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 9))
