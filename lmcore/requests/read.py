"""Read a request: what is generated from, which settings it asks for, and what the server makes of each field."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from lmcore.requests.curl import CURL, from_curl
from lmcore.requests.fields import GREEDY, MESSAGES, Reader, samples
from lmcore.requests.servers import ALIASES, SERVERS, Server
from lmcore.sampling import Note, SamplingSettings

__all__ = ["Request", "RequestError", "read"]


NOTHING = "Nothing was pasted. Paste a JSON body or a curl line."
NOT_JSON = "The body is not JSON: {why} in line {line}, column {column}."
TOO_DEEP = "The body is nested too deeply."
NO_OBJECT = "The body is a {kind}; a request is an object of fields, in braces."
PROBLEMS = (NOTHING, NOT_JSON, TOO_DEEP, NO_OBJECT)
"""Every template of a `RequestError`, besides the sentences on a curl line."""
_FENCED = re.compile(r"```\w*\s*\n(.*?)\n?```", re.DOTALL)  # as it stands in a Markdown text


class RequestError(ValueError):
    """What was pasted is no request; the message, which is `note`, says why in a sentence."""

    def __init__(self, template: str, **values: Any) -> None:
        self.note = Note(template, **values)
        super().__init__(self.note)


@dataclass(frozen=True)
class Request:
    """A request as a server takes it.

    Attributes:
        server: Which route it was read for.
        is_guess: Whether that was guessed, because nothing in the request says so.
        model: The model's name there; "" where none is given.
        prompt: The text it goes on from; None in a chat or where there is none.
        prompt_ids: The token ids it goes on from, where it gives ids.
        messages: (role, text) of each message of a chat.
        settings: What the server samples with; None where it refuses a value, which `refused` says.
        refused: The server's refusal, in a sentence; "" where it takes everything.
        remarks: What is unknown, ignored, misspelt or not computed, a sentence each.
        top_log_probs: How many log-probabilities a token it asks for; 0 for none.
        max_tokens: How many tokens it asks for at most; None where it leaves that open.
        stop: Texts that end the generation.
    """

    server: Server
    is_guess: bool
    model: str = ""
    prompt: str | None = None
    prompt_ids: tuple[int, ...] = ()
    messages: tuple[tuple[str, str], ...] = ()
    settings: SamplingSettings | None = None
    refused: str = ""
    remarks: tuple[Note, ...] = ()
    top_log_probs: int = 0
    max_tokens: int | None = None
    stop: tuple[str, ...] = field(default=())

    @property
    def text(self) -> str:
        """The prompt, or the messages joined plainly, each after its role."""
        if self.prompt is not None or not self.messages:
            return self.prompt or ""
        return "\n".join(f"{role}: {text}" for role, text in self.messages)


def read(text: str, server: str = "") -> Request:
    """Read a JSON body, or a curl line, as one of `SERVERS` takes it.

    Keys are dropped while it is read: nothing of a header, and no field that looks like a key, is in what is returned.

    Args:
        text: The JSON, or the curl line.
        server: The name of the route; "" takes it from the address and the fields.

    Raises:
        RequestError: it is neither.
        KeyError: no such server.

    >>> request = read('{"prompt": "The", "temperature": 0.7, "repeat_penalty": 1.1}', "vllm")
    >>> request.settings.temperature, request.settings.repetition_penalty
    (0.7, 1.0)
    >>> str(request.remarks[0])[:68]
    'vLLM has no field repeat_penalty and ignores it: it changes nothing.'
    """
    address, body = _parts(text)
    chosen, is_guess = (SERVERS[server], False) if server else _server_of(address, body)
    reader = Reader(chosen)
    reader.read(body)
    settings, refused = reader.settings(body)
    if chosen.name == "tgi" and not samples(body):
        reader.note(GREEDY)
    messages = tuple(_messages(body.get("messages")))
    if messages:
        reader.note(MESSAGES)
    prompt = body.get(chosen.prompt)
    if isinstance(prompt, list) and len(prompt) == 1 and not isinstance(prompt[0], int):
        prompt = prompt[0]  # a batch of one; a lone number is a prompt of one token
    return Request(
        server=chosen,
        is_guess=is_guess,
        model=body["model"] if isinstance(body.get("model"), str) else "",
        prompt=prompt if isinstance(prompt, str) else None,
        prompt_ids=_ids(prompt),
        messages=messages,
        settings=settings,
        refused=refused,
        remarks=tuple(reader.remarks),
        top_log_probs=_count(body),
        max_tokens=_most(body),
        stop=_stops(_everything(body)),
    )


def _parts(text: str) -> tuple[str, dict[str, Any]]:
    text = text.strip().strip("\ufeff")
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1].strip()
    if not text:
        raise RequestError(NOTHING)
    address = ""
    try:
        if CURL.match(text):
            address, text = from_curl(text)
        body = json.loads(text)
    except json.JSONDecodeError as error:
        raise RequestError(NOT_JSON, why=error.msg, line=error.lineno, column=error.colno) from None
    except RecursionError:
        raise RequestError(TOO_DEEP) from None
    except ValueError as error:
        raise RequestError("{why}", why=str(error)) from None
    if not isinstance(body, dict):
        raise RequestError(NO_OBJECT, kind=type(body).__name__)
    return address, body


def _server_of(address: str, body: Mapping[str, Any]) -> tuple[Server, bool]:
    """Say which server a request was for, and whether that is a guess."""
    try:
        where = urlsplit(address if "://" in address else f"http://{address}")
    except ValueError:  # no address: the fields alone say
        where = urlsplit("")
    try:
        port = where.port
    except ValueError:
        port = None
    path, is_v1 = where.path.rstrip("/"), "/v1/" in where.path
    if (where.hostname or "").endswith("openai.com"):
        return SERVERS["openai"], False
    if path.endswith(("/api/generate", "/api/chat")) or isinstance(body.get("options"), dict):
        return SERVERS["ollama"], False
    if isinstance(body.get("parameters"), dict) or "inputs" in body:
        return SERVERS["tgi"], False
    if path.endswith(("/completion", "/infill")) or "n_predict" in body:
        return SERVERS["llama-server"], False
    by_port = {11434: "ollama-v1", 8000: "vllm", 30000: "sglang", 8080: "llama-server"}
    if is_v1 and port in by_port:
        return SERVERS[by_port[port]], True
    asked = {name for name in body if name in ALIASES or name in ("samplers",)}
    known = {name: len(asked & {*SERVERS[name].knobs, "samplers"}) for name in ("openai", "vllm", "llama-server")}
    best = max(known, key=known.__getitem__)  # the first of equals
    return SERVERS[best if known[best] else "vllm"], True


def _everything(body: Mapping[str, Any]) -> dict[str, Any]:
    inner: dict[str, Any] = next(
        (body[name] for name in ("options", "parameters") if isinstance(body.get(name), dict)), {}
    )
    return {**inner, **body}


def _messages(told: Any) -> list[tuple[str, str]]:
    found = []
    for message in told if isinstance(told, list) else ():
        if not isinstance(message, dict):
            continue
        content = message.get("content")
        if isinstance(content, list):  # parts, of which those of text are taken
            content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
        found.append((str(message.get("role", "user"))[:40], content if isinstance(content, str) else ""))
    return found


def _ids(prompt: Any) -> tuple[int, ...]:
    is_list = isinstance(prompt, Sequence) and not isinstance(prompt, str) and len(prompt) > 0
    if not is_list or not all(type(token) is int and token >= 0 for token in prompt):
        return ()
    return tuple(prompt)


def _count(body: Mapping[str, Any]) -> int:
    asked = _everything(body)
    for name in ("top_logprobs", "n_probs", "top_n_tokens", "logprobs"):
        value = asked.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return max(value, 0)
    return 1 if asked.get("logprobs") is True else 0


def _most(body: Mapping[str, Any]) -> int | None:
    asked = _everything(body)
    for name in ("max_tokens", "max_completion_tokens", "max_new_tokens", "n_predict", "num_predict"):
        value = asked.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _stops(asked: Mapping[str, Any]) -> tuple[str, ...]:
    stop = asked.get("stop")
    if isinstance(stop, str):
        return (stop,)
    return tuple(text for text in stop if isinstance(text, str)) if isinstance(stop, list) else ()
