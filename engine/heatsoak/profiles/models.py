"""The shapes of language models: what their memory and their work are counted from.

Shipped shapes stand in `profiles/models.yaml`, each with its source; a user's own, in
`$XDG_CONFIG_HOME/heatsoak/models.yaml`, win over shipped ones of the same name.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from heatsoak.errors import UsageError
from heatsoak.profiles.checks import SchemaError, known, listed, mapping, schema, text
from heatsoak.profiles.files import read_yaml, shipped_folder, user_folder

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "heatsoak-models/1"
SHAPE_EXAMPLE = "layers=40,hidden=5120,ffn=13824,heads=40,kv_heads=40,vocab=32000"

Biases = Literal["none", "qkv", "all"]


@dataclass(frozen=True, slots=True)
class ModelShape:
    """One decoder-only transformer, by the numbers of its `config.json`."""

    name: str
    """Name on the command line, such as `llama-2-13b`; of a `--shape`, the shape."""
    layers: int
    hidden: int
    """Width of the residual stream, h."""
    ffn: int
    """Inner width of the feed-forward block, f."""
    heads: int
    kv_heads: int
    """Heads of keys and values; each serves `heads / kv_heads` query heads."""
    vocab: int
    """Rows of the embedding, V."""
    head_width: int = 0
    """Width of one head; 0: hidden / heads."""
    tied: bool = False
    """Whether the output head is the embedding itself."""
    gated: bool = True
    """Whether the feed-forward block is SwiGLU (three matrices), not GELU (two)."""
    biases: Biases = "none"
    """Linear layers with a bias; `all` also means layer norms instead of RMS norms (GPT-2)."""
    positions: int = 0
    """Learned positions, the longest context there is; 0: rotary."""
    parameters_stated: int = 0
    """The count where the layers are not all of this shape (hybrids); 0: counted from the shape."""
    max_context: int = 0
    """Longest context the model was trained for, in tokens; 0: not known."""
    is_hybrid: bool = False
    """Whether some layers are of another kind: its activations are an estimate."""
    sources: tuple[str, ...] = ()

    @property
    def attention_width(self) -> int:
        """Width of all query heads together."""
        return self.heads * (self.head_width or self.hidden // self.heads)

    @property
    def kv_width(self) -> int:
        """Width of all key heads together."""
        return self.kv_heads * (self.head_width or self.hidden // self.heads)

    @property
    def block_matrices(self) -> int:
        """Parameters in the matrices of one layer: what LoRA adapts and what NF4 quantises."""
        attention = self.hidden * (2 * self.attention_width + 2 * self.kv_width)
        return attention + (3 if self.gated else 2) * self.hidden * self.ffn

    @property
    def block_parameters(self) -> int:
        """All parameters of one layer."""
        small = 2 * self.hidden
        if self.biases != "none":
            small += self.attention_width + 2 * self.kv_width
        if self.biases == "all":
            small += self.hidden + self.ffn + self.hidden + 2 * self.hidden
        return self.block_matrices + small

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the token embedding."""
        return self.vocab * self.hidden

    @property
    def head_parameters(self) -> int:
        """Parameters of an output head of its own."""
        return 0 if self.tied else self.vocab * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters, P: as stated for a hybrid, else counted."""
        return self.parameters_stated or self.parameters_counted

    @property
    def parameters_counted(self) -> int:
        """All parameters as this shape has them."""
        final_norm = self.hidden * (2 if self.biases == "all" else 1)
        return (
            self.layers * self.block_parameters
            + self.embedding_parameters
            + self.head_parameters
            + self.positions * self.hidden
            + final_norm
        )

    @property
    def largest_matrix(self) -> int:
        """Parameters of the largest single tensor."""
        return max(self.embedding_parameters, self.hidden * self.ffn)

    def lora_parameters(self, rank: int) -> int:
        """Trainable parameters of rank-`rank` adapters on every matrix of every layer.

        Each adapted matrix of (m, n) gets r * (m + n) (LoRA, arXiv 2106.09685, section 4.1).
        """
        hidden, attention, kv = self.hidden, self.attention_width, self.kv_width
        ends = 2 * (hidden + attention) + 2 * (hidden + kv)
        ends += (3 if self.gated else 2) * (hidden + self.ffn)
        return self.layers * rank * ends


_WHOLE = (
    "layers", "hidden", "ffn", "heads", "kv_heads", "vocab", "head_width", "positions",
    "parameters_stated", "max_context",
)  # fmt: skip
_FLAGS = ("tied", "gated", "is_hybrid")
_NEEDED = ("layers", "hidden", "ffn", "heads", "kv_heads", "vocab")
_SPELLINGS = {"parameters": "parameters_stated", "hybrid": "is_hybrid"}
"""What files and the command line say for a field."""
_BIGGEST = 10**13


def model_shapes() -> dict[str, ModelShape]:
    """All models by name, the user's own in place of shipped ones of the same name.

    Raises:
        UsageError: a file is no list of models; the text says what is wrong in it.
    """
    return dict(_load(shipped_folder() / "models.yaml", user_folder() / "models.yaml"))


def find_model(name: str) -> ModelShape:
    """The model of that name; upper case, an organisation and `-hf`, `-instruct` do not matter.

    Raises:
        UsageError: there is none; the text names the nearest.
    """
    shapes = model_shapes()
    wanted = name.rpartition("/")[2].lower().replace("_", "-")
    for spelling in (wanted, re.sub(r"-(hf|base|chat|instruct)$", "", wanted)):
        if spelling in shapes:
            return shapes[spelling]
    near = difflib.get_close_matches(wanted, shapes, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(shapes)}"
    raise UsageError(f"no model {name!r}; {hint} or give its --shape, such as {SHAPE_EXAMPLE}")


def parse_shape(words: str) -> ModelShape:
    """The model of `layers=40,hidden=5120,ffn=13824,heads=40,kv_heads=40,vocab=32000`.

    Also takes `head_width`, `tied`, `gated`, `biases`, `positions` and `parameters`.

    Raises:
        UsageError: a number is missing, not a number, or cannot be.
    """
    named: dict[str, Any] = {}
    for part in words.split(","):
        key, equals, value = part.partition("=")
        key = key.strip().replace("-", "_")
        if not equals:
            raise UsageError(f"--shape takes name=number pairs, not {part!r}: {SHAPE_EXAMPLE}")
        named[key] = _typed(key, value.strip())
    try:
        return _shape(words.replace(" ", ""), named, "--shape")
    except SchemaError as error:
        raise UsageError(f"{error}; such as {SHAPE_EXAMPLE}") from error


def _typed(key: str, value: str) -> object:
    if re.fullmatch(r"\d+", value):
        return bool(int(value)) if key in _FLAGS and value in ("0", "1") else int(value)
    return {"true": True, "yes": True, "false": False, "no": False}.get(value.lower(), value)


@cache
def _load(shipped: Path, user: Path) -> dict[str, ModelShape]:
    found = _read(shipped)
    if user.is_file():
        found |= _read(user)
    return found


def _read(path: Path) -> dict[str, ModelShape]:
    try:
        top = mapping(read_yaml(path, "list of models"), "the file")
        schema(top, SCHEMA)
        known(top, ("schema", "models"), "the file")
        models = mapping(top.get("models"), "models")
        return {name: _shape(text(name, "a name"), entry, name) for name, entry in models.items()}
    except SchemaError as error:
        raise UsageError(f"models {path}: {error}") from error


def _shape(name: str, entry: object, where: str) -> ModelShape:
    named = {_SPELLINGS.get(key, key): value for key, value in mapping(entry, where).items()}
    sources = tuple(
        text(one, f"{where}.sources") for one in listed(named.pop("sources", []), where)
    )
    allowed = {field.name for field in fields(ModelShape)} - {"name", "sources"}
    known(named, sorted(allowed), where)
    for key in _NEEDED:
        if key not in named:
            raise SchemaError(f"{where} needs {key}=")
    for key, value in named.items():
        if key in _WHOLE and (type(value) is not int or not 0 <= value < _BIGGEST):
            raise SchemaError(f"{where} takes a whole number for {key}, not {value!r}")
        if key in _NEEDED and value == 0:
            raise SchemaError(f"{where} takes {key} from 1 up")
        if key in _FLAGS and not isinstance(value, bool):
            raise SchemaError(f"{where} takes true or false for {key}, not {value!r}")
        if key == "biases" and value not in get_args(Biases):
            raise SchemaError(f"{where} takes biases none, qkv or all, not {value!r}")
    shape = ModelShape(name=name, sources=sources, **named)
    if shape.heads % shape.kv_heads:
        raise SchemaError(
            f"{where}: heads {shape.heads} must be a multiple of kv_heads {shape.kv_heads}"
        )
    if not shape.head_width and shape.hidden % shape.heads:
        raise SchemaError(
            f"{where}: hidden {shape.hidden} must be a multiple of heads {shape.heads}, "
            "or say head_width="
        )
    return shape
