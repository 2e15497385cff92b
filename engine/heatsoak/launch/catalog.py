"""The workloads by name: what each says of itself in its file, read without importing anything.

A workload is a file of the package `heatsoak_workloads` that opens with a literal
`WORKLOAD = {...}`. Reading it with `ast` keeps torch out of this process, and lists workloads on a
machine that has none.
"""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heatsoak.economics.memory_fit import RESERVE_BYTES
from heatsoak.economics.workload_fit import recipe_peak
from heatsoak.errors import UsageError
from heatsoak.recipe import Recipe
from heatsoak.units import BYTES_PER_GIB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heatsoak.telemetry.device import DeviceInfo

PACKAGE = "heatsoak_workloads"
_DEFAULT_WORKLOADS = {"synthetic": "synthetic", "nvidia": "llm_pretrain", "cpu": "llm_pretrain"}
_RECIPE_FIELDS = tuple(f.name for f in fields(Recipe) if f.name not in ("workload", "settings"))


@dataclass(frozen=True, slots=True)
class WorkloadInfo:
    """What a workload says of itself."""

    name: str
    version: int
    """Rises when its results stop being comparable with earlier ones."""
    unit: str
    """What its counter counts: `tokens`, `images` or `samples`."""
    title: str
    archetype: str
    """The kind of buyer whose work it stands for."""
    kinds: tuple[str, ...]
    """Kinds of device it runs on."""
    sizes: dict[str, dict[str, Any]]
    """Presets by name: the shape, `memory_gib` it needs, `kinds` it is meant for, and what it
    changes in the defaults (`recipe`)."""
    defaults: dict[str, Any]
    """Values of the recipe's fields where no option is given."""
    options: dict[str, Any]
    """What may be set: allowed values, or `int` (1 and up), `float`, `str`."""

    @property
    def needs_training(self) -> bool:
        """Whether it needs PyTorch."""
        return self.kinds != ("synthetic",)


@cache
def workloads() -> dict[str, WorkloadInfo]:
    """All workloads, by name.

    Raises:
        UsageError: a workload's file does not open with a complete literal.
    """
    spec = importlib.util.find_spec(PACKAGE)
    found = {}
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(folder).glob("*.py")):
            if not path.stem.startswith("_"):
                found[path.stem] = _read(path)
    return found


def find_workload(name: str) -> WorkloadInfo:
    """The workload of that name.

    Raises:
        UsageError: there is none.
    """
    known = workloads()
    if name not in known:
        raise UsageError(f"unknown workload {name!r}; there is {', '.join(known)}")
    return known[name]


def default_workload(devices: Sequence[DeviceInfo]) -> str:
    """The workload that all these devices take when none is named.

    Raises:
        UsageError: synthetic and real devices are mixed, which no one workload fits.
    """
    names = {_DEFAULT_WORKLOADS[device.kind] for device in devices}
    if len(names) != 1:
        raise UsageError("synthetic and real devices have no default workload in common")
    return names.pop()


def training_problem() -> str | None:
    """Why nothing can be trained here, in a sentence, or None. Imports nothing."""
    missing = [
        title
        for module, title in (("torch", "PyTorch"), ("lightning", "Lightning"))
        if importlib.util.find_spec(module) is None
    ]
    if not missing:
        return None
    verb = "are" if len(missing) > 1 else "is"
    return f"{' and '.join(missing)} {verb} not installed; pip install 'heatsoak[train]'"


def make_recipe(
    workload: WorkloadInfo | str, device: DeviceInfo, options: Mapping[str, Any]
) -> Recipe:
    """The complete recipe of a workload on a device.

    Args:
        workload: the workload, or its name.
        device: what it will run on; chooses the size where none is given.
        options: fields of `Recipe` that were asked for, by name; `settings` holds the rest.

    Raises:
        UsageError: an option or value the workload does not know, or a device it does not run on.
    """
    info = find_workload(workload) if isinstance(workload, str) else workload
    if device.kind not in info.kinds:
        raise UsageError(
            f"workload {info.name} does not run on {device.device_id}; it runs on "
            f"{_listed(info.kinds)} devices"
        )
    asked = {name: value for name, value in options.items() if name != "settings"}
    asked |= options.get("settings", {})
    size = asked.pop("size", None)
    recipe = _recipe(info, _size(info, device, size, asked), asked)
    if device.kind == "cpu" and recipe.cpu_problem is not None:
        raise UsageError(f"{info.name} on {device.device_id}: {recipe.cpu_problem}")
    return recipe


def _recipe(info: WorkloadInfo, size: str, asked: Mapping[str, Any]) -> Recipe:
    values = {"settings": {}} | info.defaults | info.sizes[size].get("recipe", {}) | {"size": size}
    settings = dict(values.pop("settings"))
    for name, value in asked.items():
        if name not in info.options:
            known = _listed(["size", *info.options])
            raise UsageError(f"{info.name} has no option {name!r}; it has {known}")
        (values if name in _RECIPE_FIELDS else settings)[name] = _checked(info, name, value)
    return Recipe(workload=info.name, settings=settings, **values)


def memory_needed_bytes(info: WorkloadInfo, recipe: Recipe) -> int | None:
    """The most that a card holds while it trains a recipe, without CUDA's own; None: not known.

    By the memory planner where the workload is a transformer, with every option of the recipe; else
    what the workload's file says of the size, which holds for the size's own recipe alone.
    """
    peak = recipe_peak(info.sizes[recipe.size], recipe)
    if peak is not None:
        return peak.peak_bytes
    is_own = recipe == _recipe(info, recipe.size, {})
    return _stated_bytes(info, recipe.size) if is_own else None


def _stated_bytes(info: WorkloadInfo, size: str) -> int | None:
    stated = info.sizes[size].get("memory_gib")
    return None if stated is None else round(float(stated) * BYTES_PER_GIB)


def _size(
    info: WorkloadInfo, device: DeviceInfo, size: str | None, asked: Mapping[str, Any]
) -> str:
    if size is not None:
        if size not in info.sizes:
            raise UsageError(f"{info.name} has no size {size!r}; it has {_listed(info.sizes)}")
        return size
    meant = [name for name, size in info.sizes.items() if device.kind in size.get("kinds", ())]
    default = str(info.defaults["size"])
    if device.kind == "cpu" or device.memory_total_bytes is None:
        # The host's memory says nothing of what its cores can train in time.
        return default if default in meant or not meant else meant[0]
    room = device.memory_total_bytes - RESERVE_BYTES
    needed = {}
    for name in meant:
        planned = memory_needed_bytes(info, _recipe(info, name, asked))
        needed[name] = (_stated_bytes(info, name) or 0) if planned is None else planned
    fitting = [name for name in meant if needed[name] <= room]
    if fitting:
        return max(fitting, key=needed.__getitem__)
    return min(meant, key=needed.__getitem__, default=default)


def _checked(info: WorkloadInfo, name: str, value: Any) -> Any:  # noqa: ANN401
    """The value as the workload takes it: of the right type and among the allowed ones."""
    allowed = info.options[name]
    if isinstance(allowed, list):
        for choice in allowed:
            if value == choice or (isinstance(value, str) and value.lower() in _spellings(choice)):
                return choice
        right = _listed(_shown(choice) for choice in allowed)
        raise UsageError(f"{info.name} takes {name} {right}; not {_shown(value)}")
    types: dict[str, type] = {"int": int, "float": float, "str": str}
    if isinstance(value, bool) and allowed != "str":
        raise UsageError(f"{info.name} takes a number for {name}, not {_shown(value)}")
    try:
        converted = types[allowed](value)
    except (TypeError, ValueError):
        raise UsageError(f"{info.name} takes a number for {name}, not {value!r}") from None
    if allowed == "float" and not 0 < converted < float("inf"):
        raise UsageError(f"{info.name} takes a number above 0 for {name}, not {value!r}")
    if allowed == "int" and not (1 <= converted == float(value) and converted < 2**31):
        raise UsageError(f"{info.name} takes a whole number from 1 up for {name}, not {value!r}")
    return converted


def _spellings(choice: Any) -> set[str]:  # noqa: ANN401
    if choice is True:
        return {"on", "true", "yes", "1"}
    if choice is False:
        return {"off", "false", "no", "0"}
    return {str(choice).lower()}


def _shown(value: Any) -> str:  # noqa: ANN401
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _listed(names: Any) -> str:  # noqa: ANN401
    return ", ".join(str(name) for name in names)


def _read(path: Path) -> WorkloadInfo:
    try:
        tree = ast.parse(path.read_bytes(), str(path))
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WORKLOAD":
                said = ast.literal_eval(node.value)
                said["kinds"] = tuple(said["kinds"])
                return WorkloadInfo(name=path.stem, **said)
    except (SyntaxError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"workload file {path} is not readable: {error}") from None
    raise UsageError(f"workload file {path} does not open with WORKLOAD = {{...}}")
