"""What happens to a tied matrix when a model is assigned, converted, copied, saved and loaded: tried, not told.

Each operation is a function of a few lines on a small torch module; what it does is read off the tensors it leaves:
which names mean one Parameter, and which Parameters one storage.

    before, outcome = run("to_dtype", vocab_size=1000, d_model=64)
    [(held.name, held.parameter, held.storage, held.nbytes) for held in outcome.after]
"""

from __future__ import annotations

import copy
import io
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn import functional as F


class TableAndHead(nn.Module):
    """A table and a head, the two ends of a language model with nothing between them; not tied when made."""

    def __init__(self, vocab_size: int, d_model: int, bias: bool = False, padding_idx: int | None = None) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=padding_idx)
        self.head = nn.Linear(d_model, vocab_size, bias=bias)
        with torch.no_grad():
            self.embedding.weight.mul_(d_model**-0.5)  # torch draws its entries from N(0, 1)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits [..., V] of ids [...]."""
        return self.head(self.embedding(ids))


class Translator(TableAndHead):
    """A pair with a second table for the language that is read: three matrices of one shape."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__(vocab_size, d_model)
        self.source_embedding = nn.Embedding(vocab_size, d_model)


@dataclass(frozen=True)
class Held:
    """A name and what it holds.

    Attributes:
        name: the parameter's name in the module, or the key in a loaded file.
        parameter: which tensor object the name means: 1, 2, ... in order of appearance, before and after together.
        storage: which memory that object's numbers lie in: "A", "B", ... likewise.
        address: `data_ptr()`; 0 for everything on the meta device.
        nbytes: bytes of the numbers.
        shape, dtype, device: as torch says them.
    """

    name: str
    parameter: int
    storage: str
    address: int
    nbytes: int
    shape: tuple[int, ...]
    dtype: str
    device: str


@dataclass(frozen=True)
class Left:
    """What an operation leaves: tensors by name, and facts by the expression that gives them."""

    tensors: Mapping[str, Tensor]
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What was there before an operation and after it, and what else it showed."""

    before: tuple[Held, ...]
    after: tuple[Held, ...]
    facts: Mapping[str, object]

    @property
    def matrices_share(self) -> bool:
        """Whether all matrices are one storage afterwards."""
        return len({held.storage for held in self.after if len(held.shape) == 2}) == 1

    @property
    def nbytes(self) -> int:
        """Bytes afterwards, each storage counted once."""
        return sum({held.storage: held.nbytes for held in self.after}.values())


def named(module: nn.Module) -> dict[str, Tensor]:
    """Return every parameter under every name it has."""
    return dict(module.named_parameters(remove_duplicate=False))


def tied(vocab_size: int, d_model: int, **choices: bool | int) -> TableAndHead:
    """Return a pair whose head is its embedding."""
    pair = TableAndHead(vocab_size, d_model, **choices)  # type: ignore[arg-type]
    pair.head.weight = pair.embedding.weight
    return pair


def assign_to_head(pair: TableAndHead) -> Left:
    """The head takes the table; the head's own values are gone."""
    table = pair.embedding.weight.detach().clone()
    pair.head.weight = pair.embedding.weight
    return Left(named(pair), {"torch.equal(pair.head.weight, table)": torch.equal(pair.head.weight, table)})


def assign_to_embedding(pair: TableAndHead) -> Left:
    """The embedding takes the head's matrix; the table's values are gone."""
    table = pair.embedding.weight.detach().clone()
    pair.embedding.weight = pair.head.weight
    return Left(named(pair), {"torch.equal(pair.head.weight, table)": torch.equal(pair.head.weight, table)})


def copy_the_values(pair: TableAndHead) -> Left:
    """Equal values, and still two matrices."""
    pair.head.weight.data.copy_(pair.embedding.weight.data)
    return Left(named(pair), {"torch.equal(head, embedding)": torch.equal(pair.head.weight, pair.embedding.weight)})


def wrap_the_data(pair: TableAndHead) -> Left:
    """One storage under two Parameters."""
    pair.head.weight = nn.Parameter(pair.embedding.weight.data)
    return Left(named(pair), {"len(list(pair.parameters()))": len(list(pair.parameters()))})


def step(pair: TableAndHead) -> Left:
    """One step of gradient descent."""
    optimizer = torch.optim.SGD(pair.parameters(), lr=1.0)
    F.cross_entropy(pair(torch.tensor([1, 2, 3])), torch.tensor([2, 3, 1])).backward()
    optimizer.step()
    difference = (pair.head.weight - pair.embedding.weight).abs().max().item()
    return Left(named(pair), {"(head - embedding).abs().max()": difference})


def step_after_copying(pair: TableAndHead) -> Left:
    """One step of gradient descent on matrices that began equal."""
    pair.head.weight.data.copy_(pair.embedding.weight.data)
    return step(pair)


def to_dtype(pair: TableAndHead) -> Left:
    """Another dtype."""
    return Left(named(pair.to(torch.float16)))


def deepcopy(pair: TableAndHead) -> Left:
    """A copy of the whole module."""
    other = copy.deepcopy(pair)
    return Left(named(other), {"other.head.weight is pair.head.weight": other.head.weight is pair.head.weight})


def deepcopy_of_parts(pair: TableAndHead) -> Left:
    """A copy of each part."""
    embedding, head = copy.deepcopy(pair.embedding), copy.deepcopy(pair.head)
    return Left({"embedding.weight": embedding.weight, "head.weight": head.weight})


def state_dict(pair: TableAndHead) -> Left:
    """Saved with torch.save and read back."""
    file = io.BytesIO()
    torch.save(pair.state_dict(), file)
    file.seek(0)
    return Left(torch.load(file), {"list(state_dict)": list(pair.state_dict()), "bytes saved": len(file.getvalue())})


def load_into_tied(pair: TableAndHead) -> Left:
    """Loaded into a module that is tied already."""
    other = tied(*pair.embedding.weight.shape)
    other.load_state_dict(pair.state_dict())
    return Left(named(other))


def load_into_untied(pair: TableAndHead) -> Left:
    """Loaded into a module that is not tied."""
    other = TableAndHead(*pair.embedding.weight.shape)
    other.load_state_dict(pair.state_dict())
    return Left(named(other), {"torch.equal(head, embedding)": torch.equal(other.head.weight, other.embedding.weight)})


def safetensors_file(pair: TableAndHead) -> Left:
    """Saved once as safetensors, and tied again on load."""
    facts: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pair.safetensors"
        try:
            safetensors.torch.save_file(pair.state_dict(), file)
        except RuntimeError as error:
            facts["save_file(pair.state_dict(), file)"] = "RuntimeError: " + str(error).strip().split(",")[0]
        safetensors.torch.save_model(pair, str(file))
        facts["list(load_file(file))"] = list(safetensors.torch.load_file(file))
        facts["bytes in the file"] = file.stat().st_size
        other = tied(*pair.embedding.weight.shape)
        safetensors.torch.load_model(other, str(file))
    return Left(named(other), facts)


def to_meta(pair: TableAndHead) -> Left:
    """Moved to the meta device, where tensors have shapes and no numbers."""
    return Left(named(pair.to("meta")))


def made_on_meta(pair: TableAndHead) -> Left:
    """Made and tied on the meta device."""
    with torch.device("meta"):
        other = tied(*pair.embedding.weight.shape)
    return Left(
        named(other), {"other.head.weight is other.embedding.weight": other.head.weight is other.embedding.weight}
    )


def from_meta(pair: TableAndHead) -> Left:
    """Made on the meta device, then given memory."""
    with torch.device("meta"):
        other = tied(*pair.embedding.weight.shape)
    return Left(named(other.to_empty(device="cpu")))


def assign_to_meta(pair: TableAndHead) -> Left:
    """Made and tied on the meta device, then given the tensors of a state_dict."""
    with torch.device("meta"):
        other = tied(*pair.embedding.weight.shape)
    other.load_state_dict(pair.state_dict(), assign=True)
    return Left(named(other), {"len(list(other.parameters()))": len(list(other.parameters()))})


def three_ways(model: Translator) -> Left:
    """One matrix for both tables and the head."""
    model.source_embedding.weight = model.embedding.weight
    model.head.weight = model.embedding.weight
    return Left(named(model), {"len(list(model.parameters()))": len(list(model.parameters()))})


def bias(pair: TableAndHead) -> Left:
    """The bias stays beside the tied matrix."""
    pair.head.weight = pair.embedding.weight
    return Left(named(pair), {"pair.head.bias.numel()": pair.head.bias.numel()})


def padding(pair: TableAndHead) -> Left:
    """The padding row gets no gradient from the lookup, and gets one through the tied head."""
    pad, targets = pair.embedding.padding_idx, torch.tensor([2, 1])
    hidden = pair.embedding(torch.tensor([1, pad]))
    loss = F.cross_entropy(F.linear(hidden, pair.head.weight.detach()), targets)
    (lookup,) = torch.autograd.grad(loss, [pair.embedding.weight])
    loss = F.cross_entropy(pair(torch.tensor([1, pad])), targets)
    (whole,) = torch.autograd.grad(loss, [pair.embedding.weight])
    facts = {
        "lookup alone: grad[pad].norm()": lookup[pad].norm().item(),
        "tied: grad[pad].norm()": whole[pad].norm().item(),
    }
    return Left(named(pair), facts)


Start = Callable[[int, int], TableAndHead]
OPERATIONS: dict[str, tuple[Start, Callable[..., Left]]] = {
    "assign_to_head": (TableAndHead, assign_to_head),
    "assign_to_embedding": (TableAndHead, assign_to_embedding),
    "copy_the_values": (TableAndHead, copy_the_values),
    "wrap_the_data": (TableAndHead, wrap_the_data),
    "step": (tied, step),
    "step_after_copying": (TableAndHead, step_after_copying),
    "to_dtype": (tied, to_dtype),
    "deepcopy": (tied, deepcopy),
    "deepcopy_of_parts": (tied, deepcopy_of_parts),
    "state_dict": (tied, state_dict),
    "load_into_tied": (tied, load_into_tied),
    "load_into_untied": (tied, load_into_untied),
    "safetensors_file": (tied, safetensors_file),
    "to_meta": (tied, to_meta),
    "made_on_meta": (tied, made_on_meta),
    "from_meta": (tied, from_meta),
    "assign_to_meta": (tied, assign_to_meta),
    "three_ways": (Translator, three_ways),
    "bias": (lambda vocab_size, d_model: TableAndHead(vocab_size, d_model, bias=True), bias),
    "padding": (lambda vocab_size, d_model: tied(vocab_size, d_model, padding_idx=0), padding),
}
"""What can be tried: the module it starts from, and the function."""


def run(operation: str, vocab_size: int, d_model: int) -> Outcome:
    """Try an operation on a small module.

    Args:
        operation: one of OPERATIONS.
        vocab_size, d_model: the matrices' shape; at least 4 rows.

    Raises:
        ValueError: for an unknown operation or too few rows.

    >>> outcome = run("deepcopy", vocab_size=10, d_model=4)
    >>> [(held.name, held.parameter, held.storage) for held in outcome.after]
    [('embedding.weight', 2, 'B'), ('head.weight', 2, 'B')]
    """
    if operation not in OPERATIONS:
        raise ValueError(f"operation must be one of {', '.join(OPERATIONS)}, got {operation!r}.")
    if vocab_size < 4 or d_model < 1:
        raise ValueError(f"the matrix must have at least 4 rows and 1 column, got {vocab_size} x {d_model}.")
    start, function = OPERATIONS[operation]
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)  # the same numbers every time, and torch's own random state as it was
        module = start(vocab_size, d_model)
        # A conversion moves the numbers of the Parameters it is given: what was there is noted before.
        seen = _Seen()
        before = tuple(seen.held(name, tensor) for name, tensor in named(module).items())
        left = function(module)
    return Outcome(before, tuple(seen.held(name, tensor) for name, tensor in left.tensors.items()), left.facts)


class _Seen:
    """Numbers tensor objects and storages in the order in which they are first seen, and keeps both alive."""

    def __init__(self) -> None:
        self._tensors: list[Tensor] = []
        self._storages: list[torch.UntypedStorage] = []

    def held(self, name: str, tensor: Tensor) -> Held:
        parameter = next((i for i, known in enumerate(self._tensors) if known is tensor), len(self._tensors))
        if parameter == len(self._tensors):
            self._tensors.append(tensor)
        # The storage object's own address: that of its data is 0 for everything on the meta device.
        storage = tensor.untyped_storage()
        known = [other._cdata for other in self._storages]
        if storage._cdata not in known:
            self._storages.append(storage)
            known.append(storage._cdata)
        return Held(
            name,
            parameter + 1,
            chr(ord("A") + known.index(storage._cdata)),
            tensor.data_ptr(),
            tensor.nbytes,
            tuple(tensor.shape),
            str(tensor.dtype).removeprefix("torch."),
            str(tensor.device),
        )
