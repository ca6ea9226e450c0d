"""A generation tree as JSON: written whole, and read back with every value checked.

Only what was chosen is believed: ids, settings, names. Probabilities are in the file for those who read it without the
model; on reading they are computed anew, and `TreeFile.restore` tells how far the file's were from these.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, NoReturn

from lmcore.constraints import Constraint
from lmcore.generation.tree import GenerationTree, Node
from lmcore.language_model import LanguageModel
from lmcore.sampling import Rules, SamplingSettings

FORMAT, VERSION = "generation tree", 1
MAX_BYTES, MAX_NODES, MAX_NAME = 2**20, 20_000, 80
_TOP = {"format", "version", "model", "vocab_size", "prompt", "prompt_ids", "settings", "nodes", "present", "tip"}
_ORIGIN = {"conversation", "template"}  # of a prompt that a chat template wrote; older files have none
_MOST_ORIGIN = 500_000  # characters
_NODE = {"parent", "id", "settings", "by_hand", "used_cache", "name", "token", "prob", "constraint"}
_CHUNK = 32  # tokens of a branch that one pass computes at most


@dataclass(frozen=True)
class FileNode:
    """One token as the file tells it; `parent` is the number of an earlier one, -1 for the prompt."""

    parent: int
    token_id: int
    settings: SamplingSettings
    by_hand: bool
    used_cache: bool
    name: str
    prob: float | None
    constraint: Constraint | None = None


@dataclass(frozen=True)
class Restored:
    """How far reading has come.

    Attributes:
        done, total: tokens put back and tokens in the file.
        difference: the largest difference between a probability computed and the one in the file.
        present, tip: the place the file remembers, and the end of the branch in view; the root until all is done.
    """

    done: int
    total: int
    difference: float
    present: Node
    tip: Node


@dataclass(frozen=True)
class TreeFile:
    """What a file says, checked against the model it is for.

    Attributes:
        prompt: the prompt's text.
        is_rendered: whether it is read as a chat template's text is: its control strings are control tokens, and
            nothing is put in front.
        prompt_ids: its tokens.
        nodes: the tokens of the tree, parents first.
        present, tip: numbers of nodes, -1 for the prompt.
        conversation: the conversation that a template made the prompt of, in the words of whoever wrote the file, who
            checks it; "" where there is none.
        template: that template, where it was not the model's own; "" where it was.
    """

    prompt: str
    is_rendered: bool
    prompt_ids: tuple[int, ...]
    nodes: tuple[FileNode, ...]
    present: int
    tip: int
    conversation: str = ""
    template: str = ""

    def restore(self, tree: GenerationTree) -> Iterator[Restored]:
        """Add the file's tokens to a tree of the same prompt, computing their distributions with the model.

        What is there already stays, and is not added twice.
        """
        placed: list[Node] = []
        following = _first_children(self.nodes)
        looked_ahead: set[int] = set()
        difference, chunk = 0.0, min(_CHUNK, tree.farthest_look)
        yield Restored(0, len(self.nodes), difference, tree.root, tree.root)
        for number, given in enumerate(self.nodes):
            parent = tree.root if given.parent < 0 else placed[given.parent]
            if number not in looked_ahead and given.used_cache:
                ahead = [number]
                while len(ahead) < chunk and ahead[-1] in following:
                    ahead.append(following[ahead[-1]])
                tree.look_ahead(parent, [self.nodes[each].token_id for each in ahead[:-1]])
                looked_ahead.update(ahead)
            node = tree.put(parent, given.token_id, given.settings, given.by_hand, given.used_cache, given.constraint)
            node.name = given.name or node.name
            placed.append(node)
            if given.prob is not None:
                difference = max(difference, abs(node.prob - given.prob))
            if number % 8 == 7:
                yield Restored(number + 1, len(self.nodes), difference, tree.root, tree.root)
        places = [tree.root if number < 0 else placed[number] for number in (self.present, self.tip)]
        yield Restored(len(self.nodes), len(self.nodes), difference, *places)


def to_json(
    tree: GenerationTree, prompt: str, present: Node, tip: Node, conversation: str = "", template: str = ""
) -> str:
    """Write a tree with the settings of each token.

    Args:
        tree: what was generated.
        prompt: the prompt's text.
        present: the node the next token goes after.
        tip: the end of the branch in view.
        conversation, template: where the prompt comes from, see `TreeFile`.
    """
    nodes = tree.nodes()
    number = {node: index - 1 for index, node in enumerate(nodes)}  # the root is -1
    settings = list(dict.fromkeys(node.settings for node in nodes[1:]))
    constraints = list(dict.fromkeys(node.constraint for node in nodes if node.constraint is not None))
    rows = [
        {
            "parent": number[node.parent],
            "id": node.token_id,
            "settings": settings.index(node.settings),
            "by_hand": node.by_hand,
            "used_cache": node.used_cache,
            "name": node.name,
            "token": node.token.decode("utf-8", "replace"),
            "prob": node.prob,
            **({"constraint": constraints.index(node.constraint)} if node.constraint is not None else {}),
        }
        for node in nodes[1:]
        if node.parent is not None
    ]
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "model": tree.lm.name,
        "vocab_size": tree.lm.config.vocab_size,
        "prompt": prompt,
        "prompt_ids": list(tree.prompt_ids),
        "settings": [_settings_out(each) for each in settings if each is not None],
        **({"constraints": [_constraint_out(each) for each in constraints]} if constraints else {}),
        "nodes": rows,
        "present": number[present],
        "tip": number[tip],
    }
    origin = {"conversation": conversation, "template": template}
    whole |= {name: text for name, text in origin.items() if text and len(text) <= _MOST_ORIGIN}
    return json.dumps(whole, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def read(text: str | bytes, lm: LanguageModel) -> TreeFile:
    """Check a file against the model it is to be opened with.

    Raises:
        ValueError: a sentence that names what is wrong and where; another model's file is refused by name.
    """
    whole = _object(_parse(text), "the file", _TOP | _ORIGIN | {"constraints"}, _TOP)
    if whole["format"] != FORMAT or whole["version"] != VERSION or isinstance(whole["version"], bool):
        _refuse(
            f'format is {whole["format"]!r:.60} and version {whole["version"]!r:.20}; this reads "{FORMAT}", {VERSION}'
        )
    name, size = _text(whole["model"], "model", 200), whole["vocab_size"]
    if name != lm.name:
        _refuse(f"it was made with the model {name!r}, and {lm.name!r} is chosen: choose {name!r} and open it again")
    if size != lm.config.vocab_size:
        _refuse(f"vocab_size is {size!r:.40}, and {lm.name} has {lm.config.vocab_size} tokens")
    limit = lm.config.context_length
    prompt = _text(whole["prompt"], "prompt", 10 * limit)
    ids = _list(whole["prompt_ids"], "prompt_ids", limit)
    prompt_ids = tuple(_integer(each, "prompt_ids", 0, lm.config.vocab_size - 1) for each in ids)
    is_rendered = list(prompt_ids) != lm.tokenizer.encode(prompt).ids
    as_rendered = lm.tokenizer.encode(prompt, special_tokens=True, add_first=False).ids
    if (is_rendered and list(prompt_ids) != as_rendered) or not prompt_ids:
        _refuse(f"prompt_ids are not the tokens that {lm.name} splits the prompt into, or there are none")
    settings = [
        _settings_in(each, f"settings {n}") for n, each in enumerate(_list(whole["settings"], "settings", MAX_NODES))
    ]
    constraints = [
        _constraint_in(each, f"constraint {n}")
        for n, each in enumerate(_list(whole.get("constraints", []), "constraints", MAX_NODES))
    ]
    nodes: list[FileNode] = []
    depth = {-1: 0}
    for n, each in enumerate(_list(whole["nodes"], "nodes", MAX_NODES)):
        node = _node(each, n, settings, constraints, lm.config.vocab_size)
        depth[n] = depth[node.parent] + 1
        if len(prompt_ids) + depth[n] > limit + 1:
            _refuse(f"node {n} stands beyond the context, which ends at {limit} tokens")
        nodes.append(node)
    present = _integer(whole["present"], "present", -1, len(nodes) - 1)
    tip = _integer(whole["tip"], "tip", -1, len(nodes) - 1)
    if present not in _lineage(nodes, tip):
        _refuse(f"present is {present}, which is not on the way to tip, {tip}")
    conversation, template = (_text(whole.get(name, ""), name, _MOST_ORIGIN) for name in ("conversation", "template"))
    return TreeFile(prompt, is_rendered, prompt_ids, tuple(nodes), present, tip, conversation, template)


def _node(
    value: Any, n: int, settings: list[SamplingSettings], constraints: list[Constraint], vocab_size: int
) -> FileNode:
    where = f"node {n}"
    row = _object(value, where, _NODE, _NODE - {"token", "prob", "name", "constraint"})
    prob = row.get("prob")
    if prob is not None and (isinstance(prob, bool) or not isinstance(prob, (int, float)) or not 0 <= prob <= 1):
        _refuse(f"{where} has the prob {prob!r:.40}, which is not a number from 0 to 1")
    _text(row.get("token", ""), f"token of {where}", 10_000)
    for key in ("by_hand", "used_cache"):
        if not isinstance(row[key], bool):
            _refuse(f"{key} of {where} is {row[key]!r:.40}, which is neither true nor false")
    chosen = settings[_integer(row["settings"], f"settings of {where}", 0, len(settings) - 1)]
    under = row.get("constraint")
    if under is not None:
        under = constraints[_integer(under, f"constraint of {where}", 0, len(constraints) - 1)]
    return FileNode(
        parent=_integer(row["parent"], f"parent of {where}", -1, n - 1),
        token_id=_integer(row["id"], f"id of {where}", 0, vocab_size - 1),
        settings=chosen,
        by_hand=row["by_hand"],
        used_cache=row["used_cache"],
        name=_text(row.get("name", ""), f"name of {where}", MAX_NAME),
        prob=None if prob is None else float(prob),
        constraint=under,
    )


def _constraint_out(constraint: Constraint) -> list[Any]:
    return [constraint.kind, constraint.text, *([True] if constraint.retries else [])]


def _constraint_in(value: Any, where: str) -> Constraint:
    told = _list(value, where, 3)
    if len(told) < 2 or not all(isinstance(each, bool) for each in told[2:]):
        _refuse(f"{where} is no pair of a kind and a text, with true behind them where it draws first")
    try:
        return Constraint(*told)
    except ValueError as error:
        _refuse(f"{where}: {str(error).rstrip('.')}")


def _settings_out(settings: SamplingSettings) -> dict[str, Any]:
    values = settings.as_dict()
    values["rules"] = {each.name: getattr(settings.rules, each.name) for each in fields(Rules)}
    values["logit_bias"] = [
        [token, "-inf" if math.isinf(bias) else bias] for token, bias in dict(settings.logit_bias).items()
    ]
    return values


def _settings_in(value: Any, where: str) -> SamplingSettings:
    known = set(SamplingSettings().as_dict())
    values = dict(_object(value, where, known, {"seed"}))
    if values["seed"] is None:
        _refuse(f"seed of {where} is null; every token of a tree was drawn with a seed")
    try:
        if "rules" in values:
            rules = dict(_object(values["rules"], f"rules of {where}", {each.name for each in fields(Rules)}))
            if isinstance(joint := rules.get("top_p_joint"), bool):  # in older files
                rules["top_p_joint"] = "without min_p" if joint else "no"
            values["rules"] = Rules(**rules)
        if "logit_bias" in values:
            pairs = [
                _list(pair, f"logit_bias of {where}", 2)
                for pair in _list(values["logit_bias"], "logit_bias", MAX_NODES)
            ]
            values["logit_bias"] = [(token, -math.inf if bias == "-inf" else bias) for token, bias in pairs]
        values["engine"] = _text(values.get("engine", "lmcore"), f"engine of {where}", MAX_NAME)
        ignored = _list(values.get("ignored", []), f"ignored of {where}", 100)
        values["ignored"] = tuple(_text(each, f"ignored of {where}", MAX_NAME) for each in ignored)
        return SamplingSettings(**values)
    except (ValueError, TypeError, OverflowError) as error:
        detail = str(error)
        _refuse(detail if detail.startswith(_OPENING) else f"{where}: {detail[:300]}")


def _parse(text: str | bytes) -> Any:
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        _refuse(f"it has {size:,} bytes, and at most {MAX_BYTES:,} are read")
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text.removeprefix("\ufeff")
        return json.loads(decoded, parse_constant=lambda name: _refuse(f"{name} is no number in JSON"))
    except UnicodeDecodeError as error:
        _refuse(f"byte {error.start} is not UTF-8 text")
    except json.JSONDecodeError as error:
        _refuse(f"it is not JSON: line {error.lineno}, column {error.colno}: {error.msg}")
    except RecursionError:
        _refuse("its brackets are nested too deeply")
    except ValueError as error:  # an integer of thousands of digits
        detail = str(error)
        _refuse(detail.removeprefix(_OPENING).rstrip(".")[:200])


_OPENING = "This file cannot be opened: "


def _refuse(why: str) -> NoReturn:
    raise ValueError(f"{_OPENING}{why}.")


def _object(value: Any, where: str, known: set[str], needed: set[str] = frozenset()) -> Mapping[str, Any]:  # type: ignore[assignment]
    if not isinstance(value, dict):
        _refuse(f"{where} is {value!r:.40}, which is no object")
    for key in value:
        if key not in known:
            _refuse(f"{where} has the field {key!r:.60}, which is not known")
    for key in sorted(needed):
        if key not in value:
            _refuse(f"{where} has no {key}")
    return value


def _list(value: Any, where: str, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        _refuse(f"{where} is no list of at most {most:,}")
    return value


def _integer(value: Any, where: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        _refuse(f"{where} is {value!r:.40}, which is not a whole number from {low} to {high}")
    return value


def _text(value: Any, where: str, most: int) -> str:
    if not isinstance(value, str) or len(value) > most:
        _refuse(f"{where} is no text of at most {most:,} characters")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        _refuse(f"{where} holds half a surrogate pair, which is no character")
    return value


def _lineage(nodes: list[FileNode], number: int) -> set[int]:
    found = {number}
    while number >= 0:
        number = nodes[number].parent
        found.add(number)
    return found


def _first_children(nodes: tuple[FileNode, ...]) -> dict[int, int]:
    first: dict[int, int] = {}
    for number, node in enumerate(nodes):
        first.setdefault(node.parent, number)
    return first
