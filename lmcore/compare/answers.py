"""The answer of an inference server, read: its text, and what is told of each token that came."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from lmcore.compare.side import Drawn
from lmcore.engines.top_tokens import TopToken, id_of
from lmcore.requests import RequestError

__all__ = ["PROBLEMS", "Answer", "read"]

NOT_JSON = "The response is not JSON: {why} in line {line}, column {column}. A stream of events cannot be read."
NO_OBJECT = "The response is no object of fields, in braces."
NO_TEXT = "The response holds no text: it has none of choices, content, response and message."
PROBLEMS = (NOT_JSON, NO_OBJECT, NO_TEXT)
"""Every template of an error."""

_IMPOSSIBLE = -9999.0  # what servers write for minus infinity where JSON has none
_COLUMNS = ("tokens", "token_logprobs", "top_logprobs")


class Answer(NamedTuple):
    """What came.

    Attributes:
        text: of the answer.
        drawn: its tokens, where log-probabilities were asked for; else empty.
        prompt_ids: the tokens of the prompt, where they are told.
    """

    text: str
    drawn: tuple[Drawn, ...]
    prompt_ids: tuple[int, ...]


def read(text: str) -> Answer:
    """Read a response of OpenAI's interfaces, as vLLM, SGLang and llama-server have them too, of llama-server's own or
    of Ollama's.

    Raises:
        RequestError: it is none; the sentence says why.

    >>> read('{"response": "Hi", "logprobs": [{"token": "Hi", "logprob": -0.5}]}').drawn[0].log_prob
    -0.5
    """
    answer = _object(text)
    choice = _choice(answer) or answer
    message = choice.get("message")
    texts = [message.get("content") if isinstance(message, dict) else None]
    texts += [choice.get(name) for name in ("text", "content", "response")]
    whole = next((each for each in texts if isinstance(each, str)), None)
    if whole is None:
        raise RequestError(NO_TEXT)
    prompt_ids = _ids(answer.get("prompt_token_ids")) or _ids(choice.get("prompt_token_ids"))
    return Answer(whole, tuple(_tokens(choice)), prompt_ids)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise RequestError(NOT_JSON, why=error.msg, line=error.lineno, column=error.colno) from None
    except (RecursionError, ValueError):
        raise RequestError(NO_OBJECT) from None
    if not isinstance(found, dict):
        raise RequestError(NO_OBJECT)
    return found


def _choice(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = answer.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _tokens(choice: Mapping[str, Any]) -> list[Drawn]:
    """Return the tokens: of a list with a row each, or of the columns of OpenAI's completions."""
    listed = choice.get("logprobs")
    rows: Any = listed.get("content") if isinstance(listed, dict) else listed
    rows = rows if isinstance(rows, list) else choice.get("completion_probabilities")
    if isinstance(rows, list):
        return [_drawn(row) for row in rows if isinstance(row, dict)]
    return _columns(listed) if isinstance(listed, dict) else []


def _drawn(row: Mapping[str, Any]) -> Drawn:
    tops = (row.get(name) for name in ("top_logprobs", "top_probs", "probs"))
    listed: list[Any] = next((each for each in tops if isinstance(each, list)), [])
    return Drawn(*_one(row), _among([_one(each) for each in listed if isinstance(each, dict)]))


def _columns(listed: Mapping[str, Any]) -> list[Drawn]:
    found = []
    names, values, tops = ([*each] if isinstance(each, list) else [] for each in map(listed.get, _COLUMNS))
    for name, value, top in zip_longest(names, values[: len(names)], tops[: len(names)]):
        place = top.items() if isinstance(top, dict) else ()
        own = _one({"token": name, "logprob": value})
        found.append(Drawn(*own, _among([_one({"token": token, "logprob": number}) for token, number in place])))
    return found


def _one(row: Mapping[str, Any]) -> tuple[bytes, int | None, float | None]:
    """Return a token's bytes, id and log-probability; no bytes for a token that is named by its id."""
    text, listed, told_id = row.get("token", row.get("tok_str")), row.get("bytes"), row.get("id")
    named = id_of(text) if isinstance(text, str) else None
    if isinstance(listed, list) and listed and all(type(each) is int and 0 <= each < 256 for each in listed):
        token = bytes(listed)
    else:
        token = text.encode("utf-8", "surrogatepass") if isinstance(text, str) and named is None else b""
    log_prob, prob = _number(row.get("logprob")), _number(row.get("prob"))
    if log_prob is None and prob is not None:
        log_prob = math.log(prob) if prob > 0 else -math.inf
    return token, told_id if type(told_id) is int and 0 <= told_id < 1 << 31 else named, log_prob


def _among(told: Sequence[tuple[bytes, int | None, float | None]]) -> tuple[TopToken, ...]:
    """Return the tokens that can be drawn, with their ranks."""
    possible = [
        (log_prob, token_id, token)
        for token, token_id, log_prob in told
        if log_prob is not None and log_prob > -math.inf
    ]
    possible.sort(key=lambda one: -one[0])
    return tuple(
        TopToken(log_prob, rank, token_id, token.decode("utf-8", "replace"))
        for rank, (log_prob, token_id, token) in enumerate(possible, 1)
    )


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return None
    return -math.inf if value <= _IMPOSSIBLE else float(min(value, 1.0))  # no probability or its logarithm is more


def _ids(value: Any) -> tuple[int, ...]:
    is_ids = isinstance(value, list) and all(type(each) is int and 0 <= each < 1 << 31 for each in value)
    return tuple(value) if is_ids else ()
