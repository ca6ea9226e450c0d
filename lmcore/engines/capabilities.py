"""What an engine can do, found by asking it: a few requests of one token each, and what it made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lmcore.engines.client import Client
from lmcore.engines.errors import EngineError
from lmcore.engines.top_tokens import TopTokens, choice_of, id_of, log_probs_of, top_tokens

PROBE = "The weather today is"
"""The text the probes use: plain words in any vocabulary."""

_NEVER = 2**20  # more tokens than a vocabulary has
_SAMPLER = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "repeat_penalty",
    "presence_penalty",
    "frequency_penalty",
)
_TOKENIZERS: tuple[tuple[str, str, str, str, str], ...] = (
    # tokenize, its text, its ids; detokenize, its text
    ("/tokenize", "prompt", "tokens", "/detokenize", "prompt"),  # vLLM
    ("/extras/tokenize", "input", "tokens", "/extras/detokenize", "text"),  # llama-cpp-python
)

PromptScores = Literal["by id", "by text", "by text, one place late", "none"]


@dataclass(frozen=True)
class Capabilities:
    """What one server was found to do.

    Attributes:
        listed: what it says of the model, in its list of models.
        fields: the settings its interface names; None when it does not describe its interface.
        defaults: its sampler's settings where none are given; a value it does not tell is None.
        takes_ids: whether a prompt may be a list of ids.
        names: how it names the tokens that may follow: by "id", by "text", or not at all.
        max_log_probs: how many of them it returns; vocab_size for all.
        whole_vocabulary: whether it returns them all.
        prompt_scores: how it scores the prompt's own tokens.
        tokenizer: the row of `_TOKENIZERS` that it has; None for none.
        processed: whether its log-probabilities follow the temperature instead of the model alone; None: not found.
        vocab_size: how many ids it takes; 0: not found.
        context_length: how many tokens it reads; 0: it does not tell.
        likely: the tokens most probable after PROBE, to know the model by.
    """

    listed: Mapping[str, Any]
    fields: frozenset[str] | None
    defaults: Mapping[str, float | None]
    takes_ids: bool
    names: Literal["id", "text", "none"]
    max_log_probs: int
    whole_vocabulary: bool
    prompt_scores: PromptScores
    tokenizer: tuple[str, str, str, str, str] | None
    processed: bool | None
    vocab_size: int
    context_length: int
    likely: TopTokens

    @property
    def cuts_written(self) -> bool:
        """Whether its tokenizer can be told to put nothing in front of a text that a template wrote; vLLM's can."""
        return self.tokenizer is not None and self.tokenizer[0] == "/tokenize"

    def has(self, field: str) -> bool:
        """Whether its interface names a setting."""
        return self.fields is not None and field in self.fields

    def is_same_model(self, other: TopTokens) -> bool:
        """Whether what is likely after PROBE is still so: the same tokens, but for what rounding turns around."""
        before = {each.name: each.log_prob for each in self.likely.best}
        after = {each.name: each.log_prob for each in other.best}
        shared = before.keys() & after.keys()
        if len(shared) < len(before) - 2:
            return False
        return all(abs(before[name] - after[name]) < 0.5 for name in shared)


def find_out(client: Client) -> Capabilities:
    """Ask a server what it can do.

    Raises:
        EngineError: when it does not answer at all, refuses the key, or has no such model.
    """
    return _Probes(client).run()


class _Probes:
    """The requests of `find_out`; each reads what those before it found."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._name = client.config.name
        self._fields: frozenset[str] | None = None
        self._by_id: dict[str, Any] = {}

    def run(self) -> Capabilities:
        listed = self._listed()
        self._fields, defaults = self._interface()
        if self._fields is None or "return_tokens_as_token_ids" in self._fields:
            self._by_id = {"return_tokens_as_token_ids": True}
        likely, names = self._likely()
        tokenizer, ids = self._tokenizer()
        takes_ids = bool(ids) and self._try({"prompt": ids}) is not None
        most, whole, counted = self._most(likely) if names != "none" else (0, False, 0)
        vocab_size = self._client.config.vocab_size or (counted if names == "id" else 0)
        return Capabilities(
            listed=listed,
            fields=self._fields,
            defaults=defaults,
            takes_ids=takes_ids,
            names=names,
            max_log_probs=most,
            whole_vocabulary=whole and names == "id",
            prompt_scores=self._prompt_scores(likely) if names != "none" else "none",
            tokenizer=tokenizer,
            processed=self._processed(likely),
            vocab_size=vocab_size or (self._count_ids() if takes_ids else 0),
            context_length=_number(listed.get("max_model_len")),
            likely=likely,
        )

    def _listed(self) -> Mapping[str, Any]:
        given = self._client.get("models")
        models = given.get("data") if isinstance(given, dict) else None
        if not isinstance(models, list):
            raise EngineError("unreadable", f"{self._name}: its list of models is not built like one.")
        wanted = self._client.config.model
        for model in models:
            if isinstance(model, dict) and model.get("id") == wanted:
                return {key: value for key, value in model.items() if isinstance(value, (str, int, float))}
        raise EngineError("no such model", f"{self._name}: it has no model {wanted!r}.")

    def _interface(self) -> tuple[frozenset[str] | None, dict[str, float | None]]:
        """The settings of a completion, where the server describes its interface."""
        try:
            described = self._client.get("/openapi.json", tries=1)
            schemas = described["components"]["schemas"]
            schema = next(
                schemas[name]["properties"]
                for name in ("CompletionRequest", "CreateCompletionRequest")
                if name in schemas
            )
        except (EngineError, KeyError, TypeError, StopIteration):
            return None, {}
        defaults = {name: schema[name].get("default") for name in _SAMPLER if name in schema}
        return frozenset(schema), defaults

    def _likely(self) -> tuple[TopTokens, Literal["id", "text", "none"]]:
        found = self._try({"logprobs": 5, **self._by_id})
        if found is None and self._by_id:
            self._by_id = {}
            found = self._try({"logprobs": 5})
        answer = self._ask({}) if found is None else found  # an error here is the server's, not of a setting
        try:
            told = log_probs_of(choice_of(answer, self._name), self._name)
            best = top_tokens(told["top_logprobs"][0], 5)
        except (EngineError, IndexError, TypeError):
            return TopTokens((), (), (), 0), "none"
        return best, "text" if None in best.token_ids else "id"

    def _tokenizer(self) -> tuple[tuple[str, str, str, str, str] | None, list[int]]:
        for row in _TOKENIZERS:
            path, text, ids, *_rest = row
            try:
                found = self._client.post(path, {"model": self._client.config.model, text: PROBE}, tries=1)[ids]
            except (EngineError, KeyError, TypeError):
                continue
            if isinstance(found, list) and found and all(isinstance(each, int) for each in found):
                return row, found
        return None, []

    def _most(self, likely: TopTokens) -> tuple[int, bool, int]:
        """The most log-probabilities it returns, whether that is all, and how many came when all were asked for."""
        for asked in (_NEVER, -1):
            if (count := self._counted(asked)) > len(likely) + 1:
                return count, True, count
        low, high = max(len(likely), 1), _NEVER  # the first is given, the second is not
        while high - low > 1:
            # In steps of powers of two as long as the two ends are far apart.
            middle = min(low * 4, (low + high) // 2)
            if self._counted(middle) >= middle:
                low = middle
            else:
                high = middle
        return low, False, 0

    def _counted(self, asked: int) -> int:
        answer = self._try({"logprobs": asked, **self._by_id})
        try:
            places = log_probs_of(choice_of(answer, self._name), self._name)["top_logprobs"]
            # By text some fall together: what came is as many as were asked for, when it is more than a few.
            count = len(places[0])
        except (EngineError, IndexError, TypeError):
            return 0
        by_text = any(id_of(name) is None for name in places[0])
        return asked if by_text and asked // 2 < count < asked < _NEVER else count

    def _prompt_scores(self, likely: TopTokens) -> PromptScores:
        answer = (
            self._try({"prompt_logprobs": 1}) if self._fields is None or "prompt_logprobs" in self._fields else None
        )
        choice = choice_of(answer, self._name) if answer is not None else {}
        scores = choice.get("prompt_logprobs")
        if isinstance(scores, list) and any(scores):
            return "by id"
        answer = self._try({"echo": True, "logprobs": 5})
        try:
            told = log_probs_of(choice_of(answer, self._name), self._name)
        except EngineError:
            return "none"
        places = told["top_logprobs"]
        n_prompt = next((n for n in range(1, len(places) + 1) if "".join(told["tokens"][:n]) == PROBE), 0)
        if not n_prompt or n_prompt < 3:
            return "none"
        # What may follow the whole text is known: a server in order gives it in the place after the text's last token.
        best = likely.texts[0]
        if n_prompt < len(places) and places[n_prompt] and max(places[n_prompt], key=places[n_prompt].get) == best:
            return "by text"
        last = places[n_prompt - 1]
        return "by text, one place late" if last and max(last, key=last.get) == best else "none"

    def _processed(self, likely: TopTokens) -> bool | None:
        """At half the temperature the gap between the first two doubles, if the numbers follow it at all."""
        answer = self._try({"logprobs": 5, "temperature": 0.5, **self._by_id})
        try:
            warm = top_tokens(log_probs_of(choice_of(answer, self._name), self._name)["top_logprobs"][0], 5)
        except (EngineError, IndexError, TypeError):
            return None
        before, after = _gap(likely), _gap(warm)
        return None if before < 0.1 else after > 1.5 * before

    def _count_ids(self) -> int:
        """The first id that is refused."""
        low, high = 0, 2**24
        if self._takes(high):
            return 0  # it does not look at them
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._takes(middle) else (low, middle)
        return high

    def _takes(self, token_id: int) -> bool:
        return self._try({"prompt": [token_id]}) is not None

    def _ask(self, more: Mapping[str, Any]) -> Any:
        body = {"model": self._client.config.model, "prompt": PROBE, "max_tokens": 1, "temperature": 0.0, **more}
        return self._client.post("completions", body)

    def _try(self, more: Mapping[str, Any]) -> Any:
        """Ask with a setting that the server may refuse, or fail at; None when it does."""
        body = {"model": self._client.config.model, "prompt": PROBE, "max_tokens": 1, "temperature": 0.0, **more}
        try:
            return self._client.post("completions", body, tries=1)
        except EngineError as error:
            if error.kind in ("refused", "failing", "context too long", "no log-probabilities"):
                return None
            raise


def _gap(found: TopTokens) -> float:
    values = found.log_probs
    return values[0] - values[1] if len(values) > 1 else 0.0


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
