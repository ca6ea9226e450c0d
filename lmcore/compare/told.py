"""A side that was pasted: a request as it was sent to a server, and its answer with the log-probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmcore import requests
from lmcore.compare import answers
from lmcore.compare.side import Drawn
from lmcore.engines.top_tokens import TopToken, TopTokens
from lmcore.sampling import SamplingSettings

__all__ = ["Told", "told"]


@dataclass(frozen=True)
class Told:
    """What a request and its response tell; see `lmcore.compare.side.Run` for the attributes.

    Attributes:
        request: as it was read.
        messages: of a chat, whose rendered text the server does not tell.
        whole: what the answer says, where its tokens are not told one by one.
    """

    name: str
    request: requests.Request
    text: str | None
    ids: tuple[int, ...] | None
    drawn: tuple[Drawn, ...]
    whole: str
    settings: SamplingSettings | None

    tokenizer = None
    logits = None

    @property
    def messages(self) -> tuple[Mapping[str, Any], ...]:
        """The messages of a chat."""
        return tuple({"role": role, "content": content} for role, content in self.request.messages)

    @property
    def tokens(self) -> tuple[bytes, ...] | None:
        """No response tells the bytes of its prompt's tokens."""
        return None

    @property
    def places(self) -> Mapping[int, TopTokens]:
        """What the server held most probable where it drew, after as many tokens as the prompt has."""
        return self.places_after(len(self.ids)) if self.ids is not None else {}

    @property
    def ends(self) -> dict[str, Any]:
        """What the request says of the text's end."""
        found: dict[str, Any] = {"stop": tuple(sorted(self.request.stop))}
        return found | ({"max_new_tokens": self.request.max_tokens} if self.request.max_tokens else {})

    def places_after(self, prompt: int) -> dict[int, TopTokens]:
        """Return what it held most probable at each place, for a prompt of so many tokens."""
        found = {}
        for index, each in enumerate(self.drawn):
            best = each.among
            if not best and each.log_prob is not None:
                best = (TopToken(each.log_prob, 1, each.token_id, each.token.decode("utf-8", "replace")),)
            if best:
                columns = zip(*((one.log_prob, one.token_id, one.text) for one in best), strict=True)
                log_probs, token_ids, texts = (tuple(column) for column in columns)
                found[prompt - 1 + index] = TopTokens(log_probs, token_ids, texts, len(best))
        return found


def told(request: str, response: str, server: str = "", name: str = "") -> Told:
    """Read a pasted request, a JSON body or a curl line, and its response.

    Responses of OpenAI's interfaces (as vLLM, SGLang and llama-server have them, too), of llama-server's own and of
    Ollama's are read, with log-probabilities where they were asked for.

    Args:
        request: what was sent; see `lmcore.requests.read`.
        response: the JSON that came; "" where there is none yet.
        server: which route it was sent to; "" takes it from the request.
        name: what to call it; the server's title by itself.

    Raises:
        ValueError: one of the two cannot be read; the message, which is a `Note`, says why in a sentence.

    >>> found = told('{"prompt": "The", "max_tokens": 1}',
    ...              '{"choices": [{"text": " cat", "logprobs": {"tokens": [" cat"], "token_logprobs": [-0.5],'
    ...              ' "top_logprobs": [{" cat": -0.5, " dog": -1.5}]}}]}')
    >>> found.text, found.drawn[0].token, [each.text for each in found.drawn[0].among]
    ('The', b' cat', [' cat', ' dog'])
    """
    sent = requests.read(request, server)
    answer = answers.read(response) if response.strip() else answers.Answer("", (), ())
    prompt_ids = sent.prompt_ids or answer.prompt_ids
    return Told(
        name=name or sent.server.title,
        request=sent,
        text=sent.prompt if sent.prompt is not None or not sent.messages else None,
        ids=prompt_ids or None,
        drawn=answer.drawn,
        whole=answer.text,
        settings=sent.settings,
    )
