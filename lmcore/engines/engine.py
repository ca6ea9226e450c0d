"""A model that runs elsewhere: what it can do, its tokens, what it says comes next, and the text it writes."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import replace
from datetime import date
from typing import Any, TypeVar

from lmcore.chat import Elsewhere
from lmcore.engines.capabilities import PROBE, Capabilities, find_out
from lmcore.engines.chat import rendered_by
from lmcore.engines.client import Client, submit
from lmcore.engines.config import EngineConfig
from lmcore.engines.drawing import DrawnToken, Sampler, drawn_tokens
from lmcore.engines.errors import EngineError
from lmcore.engines.prompt_scores import PromptToken, in_order, one_place_late, with_ids
from lmcore.engines.served_text import ServedText
from lmcore.engines.tokens import ServerTokens, server_tokens
from lmcore.engines.top_tokens import TopTokens, choice_of, log_probs_of, top_tokens

T = TypeVar("T")
Prompt = str | tuple[int, ...]

CHECK_SECONDS = 30.0
"""How long the model is taken to be the one it was, without asking again."""

_KEPT = 256  # answers
_AT_ONCE = 8  # small questions to one server
_KEPT_TEXTS = 400_000  # ids; more than any vocabulary in use


class Engine:
    """One engine, shared by all sessions; nothing here holds a lock while a server is waited for, but its own first
    questions.

    Args:
        config: which one.
    """

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.client = Client(config)
        self.generation = 0
        """How many times another model was found under the same name."""
        self._finding = threading.Lock()
        self._found: Capabilities | None = None
        self._checked = 0.0
        self._texts: dict[int, str] = {}
        self._answers: OrderedDict[Hashable, Any] = OrderedDict()
        self._answering = threading.Lock()

    @property
    def name(self) -> str:
        """What the explorer calls it."""
        return self.config.name

    @property
    def capabilities(self) -> Capabilities:
        """What it can do: asked once, and again after another model was found.

        Raises:
            EngineError: when it does not answer.
        """
        if self._found is None:
            with self._finding:
                if self._found is None:
                    self._found = find_out(self.client)
                    self._checked = time.monotonic()
        return self._found

    def check(self, after: float = CHECK_SECONDS) -> None:
        """Make sure that it still serves the model it did, unless that was asked less than `after` seconds ago.

        Raises:
            EngineError: "model changed" once, when it does not; everything known of the old one is forgotten.
        """
        known = self.capabilities
        if time.monotonic() - self._checked < after or known.names == "none":
            return
        self._checked = time.monotonic()
        if known.is_same_model(self._candidates(PROBE, len(known.likely))):
            return
        self.generation += 1
        with self._answering:
            self._answers.clear()
            self._texts.clear()
        self._found = None
        raise EngineError(
            "model changed",
            f"{self.name}: another model answers under the same name; what came before is the old one's.",
        )

    def tokenize(self, text: str) -> ServerTokens:
        """Return a text in the server's tokens.

        Raises:
            EngineError: also for a server without a tokenizer to ask.
        """
        return self._kept(("tokens", text), lambda: self._tokenize(text))

    def rendered(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Elsewhere | None:
        """Return what the server makes of a conversation, None where it does not tell; see `rendered_by`."""
        return rendered_by(self.client, messages, **options)

    def conversation(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> ServedText | None:
        """Return a conversation as the server reads it, to be given to `prompt`; None where it does not tell.

        Args:
            messages, options: as for `lmcore.chat.render`.
        """

        def ask() -> ServedText | None:
            found = self.rendered(messages, **options)
            return None if found is None else ServedText(found.text, found.ids)

        # Templates may write the date.
        asked = json.dumps([list(messages), options], sort_keys=True, default=repr)
        return self._kept(("conversation", date.today(), asked), ask)

    def written(self, text: str) -> ServedText:
        """Return a text that a template wrote, to be given to `prompt`: its control strings are control tokens."""
        return ServedText(text)

    def prompt(self, text: str) -> Prompt:
        """Return what to send for a text: its ids where the server takes them, so that nothing is cut twice.

        A text that a template wrote is sent as it is to a server whose tokenizer may cut it otherwise than a prompt.
        """
        if isinstance(text, ServedText) and text.ids is None and not self.capabilities.cuts_written:
            return text
        return self.tokenize(text).ids if self.capabilities.takes_ids else text

    def counted(self, text: str) -> int | None:
        """Return how many tokens the server says it read of a text as a prompt; None where it does not say."""
        prompt = self.prompt(text)

        def ask() -> int | None:
            answer = self.client.post("completions", {**self._body(prompt, 1), "max_tokens": 1, "temperature": 0.0})
            usage = answer.get("usage") if isinstance(answer, dict) else None
            count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
            return count if type(count) is int else None

        return self._kept(("counted", prompt), ask)

    def beginning(self, text: str, count: int) -> Prompt | None:
        """Return what to send for a text's first `count` tokens alone, None where nothing says just that.

        A server that takes text only is given theirs, when they end with a character and it cuts it no other way.
        """
        whole = self.tokenize(text)
        if count == len(whole.ids):
            return self.prompt(text)
        if self.capabilities.takes_ids:
            return whole.ids[:count]
        if isinstance(text, ServedText):
            return None  # a part of it would be read as a text that somebody typed
        cut = next((n for n, (_first, end) in enumerate(whole.groups, start=1) if end == count), None)
        if cut is None:
            return None
        part = "".join(whole.shared[:cut])
        return part if part and self.tokenize(part).ids == whole.ids[:count] else None

    def next(self, prompt: Prompt, n: int) -> TopTokens:
        """Return the n most probable tokens after a prompt; fewer where the server tells fewer apart.

        Where it names tokens by their text, those of the same text fall together, and the ones behind them are no
        longer known to be the most probable: then as many are asked for as can be told apart.

        Args:
            prompt: ids or a text.
            n: how many; -1 for the whole vocabulary.
        """
        return self._kept(("next", prompt, n), lambda: self._next(prompt, n))

    def prompt_scores(self, prompt: Prompt, n: int) -> tuple[tuple[PromptToken, ...], TopTokens]:
        """Return how each token of a prompt was foreseen, with the n most probable ones, and what may follow it.

        Raises:
            EngineError: also for a server that does not score prompts.
        """
        return self._kept(("scores", prompt, n), lambda: self._prompt_scores(prompt, n))

    def texts(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each token alone; "" where it is none, or the server cannot be asked."""
        if self.capabilities.tokenizer is not None and any(token_id not in self._texts for token_id in ids):
            submit(self._learn(ids)).result()
        return [self._texts.get(token_id, "") for token_id in ids]

    def draw(self, prompt: Prompt, sampler: Sampler, n: int) -> list[DrawnToken]:
        """Let the server draw one token, or as many as make a whole character, and return them."""
        body = {**self._body(prompt, n), **self._settings(sampler), "max_tokens": 1}
        choice = choice_of(self.client.post("completions", body), self.name)
        return drawn_tokens(choice, n, self.name)

    def stream(
        self, prompt: Prompt, sampler: Sampler, n: int, max_tokens: int, take: Callable[[DrawnToken], bool]
    ) -> Future[int]:
        """Let the server draw up to `max_tokens` tokens, and hand over each as it comes.

        Args:
            prompt: ids or a text.
            sampler: how to draw.
            n: how many of the most probable tokens to tell with each.
            max_tokens: the most tokens.
            take: called with each, in the thread of all engines' requests: be quick. False ends it.

        Returns:
            How many tokens came, in the future; cancelling it ends the request.
        """
        body = {**self._body(prompt, n), **self._settings(sampler), "max_tokens": max_tokens, "stream": True}

        async def read() -> int:
            count = 0
            async with aclosing(self.client.events("completions", body)) as events:
                async for event in events:
                    if isinstance(event, dict) and event.get("choices") == []:
                        continue  # what the request costs, at the end, or what was checked, at the beginning
                    choice = choice_of(event, self.name)
                    if choice.get("logprobs") is None and not choice.get("text"):
                        continue  # the last event of some servers only says why the text ended
                    for token in await self._apart(drawn_tokens(choice, n, self.name)):
                        if not take(token):
                            return count
                        count += 1
            return count

        return submit(read())

    def close(self) -> None:
        """Close its connections."""
        self.client.close()

    def _tokenize(self, text: str) -> ServerTokens:
        def together(some: Sequence[int]) -> str:
            return submit(self._text_of(some)).result()

        plain = str.__str__(text)  # which, unlike a text that a template wrote, equals what the tokens add up to
        if isinstance(text, ServedText) and text.ids is not None:
            return server_tokens(plain, text.ids, None, self.texts(text.ids), together)
        row = self.capabilities.tokenizer
        if row is None:
            raise EngineError("refused", f"{self.name}: it has no tokenizer that can be asked.")
        path, field, ids_field, *_rest = row
        first = {"add_special_tokens": False} if isinstance(text, ServedText) and self.capabilities.cuts_written else {}
        answer = self.client.post(path, {"model": self.config.model, field: text, "return_token_strs": True, **first})
        ids = answer.get(ids_field) if isinstance(answer, dict) else None
        if not isinstance(ids, list) or not all(isinstance(each, int) for each in ids):
            raise EngineError("unreadable", f"{self.name}: its answer holds no token ids.")
        written = answer.get("token_strs")
        if not isinstance(written, list) or len(written) != len(ids):
            written = None
        return server_tokens(plain, ids, written, self.texts(ids), together)

    async def _apart(self, drawn: list[DrawnToken]) -> list[DrawnToken]:
        """Give tokens that came in one event each its own text, where theirs make up the event's."""
        ids = [token.token_id for token in drawn if token.token_id is not None]
        if len(drawn) < 2 or len(ids) < len(drawn) or self.capabilities.tokenizer is None:
            return drawn
        try:
            await self._learn(ids)
        except EngineError:  # the event's text is enough to go on with
            return drawn
        texts = [self._texts.get(token_id, "") for token_id in ids]
        if "".join(texts) != "".join(token.text for token in drawn):  # parts of characters
            return drawn
        return [replace(token, text=text) for token, text in zip(drawn, texts, strict=True)]

    async def _learn(self, ids: Sequence[int]) -> None:
        """Ask for the text of each token that is not known yet."""
        missing = [token_id for token_id in dict.fromkeys(ids) if token_id not in self._texts]
        room = asyncio.Semaphore(_AT_ONCE)

        async def text_of(token_id: int) -> str:
            async with room:
                return await self._text_of([token_id])

        for token_id, text in zip(missing, await asyncio.gather(*map(text_of, missing)), strict=True):
            if len(self._texts) < _KEPT_TEXTS:
                self._texts[token_id] = text

    async def _text_of(self, ids: Sequence[int]) -> str:
        row = self.capabilities.tokenizer
        if row is None:
            return ""
        *_rest, path, field = row
        try:
            answer = await self.client.request("POST", path, {"model": self.config.model, "tokens": list(ids)}, tries=1)
        except EngineError as error:
            if error.kind in ("failing", "refused"):  # llama-cpp-python fails at bytes that are no whole character
                return ""
            raise
        text = answer.get(field) if isinstance(answer, dict) else None
        return text if isinstance(text, str) else ""

    def _next(self, prompt: Prompt, n: int) -> TopTokens:
        found = self._candidates(prompt, n)
        if not found.merged or n < 0:
            return found
        low, high = 1, n  # the first alone is always told; of n some were not
        best = self._candidates(prompt, 1)
        while high - low > 1:
            middle = (low + high) // 2
            tried = self._candidates(prompt, middle)
            low, high, best = (middle, high, tried) if not tried.merged else (low, middle, best)
        return best

    def _candidates(self, prompt: Prompt, n: int) -> TopTokens:
        # Greedy, so that the token that comes is among the most probable ones itself.
        body = {**self._body(prompt, n), "max_tokens": 1, "temperature": 0.0}
        told = log_probs_of(choice_of(self.client.post("completions", body), self.name), self.name)
        if not told["top_logprobs"] or not told["top_logprobs"][0]:
            raise EngineError("no log-probabilities", f"{self.name}: its answer holds no log-probabilities.")
        place = told["top_logprobs"][0]
        return top_tokens(place, len(place) if n < 0 else n)

    def _prompt_scores(self, prompt: Prompt, n: int) -> tuple[tuple[PromptToken, ...], TopTokens]:
        kind = self.capabilities.prompt_scores
        if kind == "none":
            raise EngineError("no log-probabilities", f"{self.name}: it does not score the tokens of a prompt.")
        body = {**self._body(prompt, n), "max_tokens": 1, "temperature": 0.0}
        if kind == "by id":
            choice = choice_of(self.client.post("completions", {**body, "prompt_logprobs": n}), self.name)
            places = log_probs_of(choice, self.name)["top_logprobs"]
            if not places or not places[0]:
                raise EngineError("no log-probabilities", f"{self.name}: its answer holds no log-probabilities.")
            following = top_tokens(places[0], n)
            return with_ids(choice.get("prompt_logprobs"), self.name), following
        choice = choice_of(self.client.post("completions", {**body, "echo": True}), self.name)
        told = log_probs_of(choice, self.name)
        following = self.next(prompt, n)
        # Texts do not tell where the prompt ends: those of parts of characters are empty.
        count = len(told["tokens"]) - 1
        if isinstance(prompt, str) and not isinstance(prompt, ServedText) and self.capabilities.tokenizer is not None:
            count = len(self.tokenize(prompt).ids)
        return (in_order if kind == "by text" else one_place_late)(told, count, n), following

    def _body(self, prompt: Prompt, n: int) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.config.model,
            "prompt": prompt if isinstance(prompt, str) else list(prompt),
            "logprobs": n,
        }
        if self.capabilities.names == "id":
            body["return_tokens_as_token_ids"] = True
        return body

    def _settings(self, sampler: Sampler) -> Mapping[str, Any]:
        return sampler.as_sent(self.capabilities.fields)

    def _kept(self, key: Hashable, ask: Callable[[], T]) -> T:
        key = (self.generation, key)
        with self._answering:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        found = ask()
        with self._answering:
            self._answers[key] = found
            while len(self._answers) > _KEPT:
                self._answers.popitem(last=False)
        return found
