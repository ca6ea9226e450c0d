"""A conversation as a server's chat endpoint renders it: its text and its ids, where the server can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmcore.chat import Elsewhere
from lmcore.engines.client import Client
from lmcore.engines.errors import EngineError


def rendered_by(
    client: Client,
    messages: Sequence[Mapping[str, Any]],
    *,
    add_generation_prompt: bool = True,
    continue_final_message: bool = False,
    tools: Sequence[Mapping[str, Any]] | None = None,
    **variables: Any,
) -> Elsewhere | None:
    """Ask a server what it makes of a conversation; None where it has no endpoint that tells.

    vLLM's /tokenize takes messages; llama-server's /apply-template gives the text, and its /tokenize the ids.

    Args:
        client: the server.
        messages, add_generation_prompt, continue_final_message, tools, variables: as for `lmcore.chat.render`.

    Raises:
        EngineError: the server cannot be reached, or refuses the conversation.
    """
    body: dict[str, Any] = {
        "model": client.config.model,
        "messages": [dict(message) for message in messages],
        "add_generation_prompt": add_generation_prompt,
    }
    body |= {"continue_final_message": True} if continue_final_message else {}
    body |= {"tools": list(tools)} if tools else {}
    body |= {"chat_template_kwargs": variables} if variables else {}
    refusal = None
    for ask in (_as_vllm, _as_llama_server):
        try:
            if (found := ask(client, body)) is not None:
                return found
        except EngineError as error:
            if error.kind not in ("refused", "failing"):
                raise
            refusal = error  # of an endpoint that takes no conversations, or that takes not this one
    if refusal is not None:
        raise refusal
    return None


def _as_vllm(client: Client, body: Mapping[str, Any]) -> Elsewhere | None:
    ids = _ids(_post(client, "/tokenize", body))
    if ids is None:
        return None
    text = _field(_post(client, "/detokenize", {"model": client.config.model, "tokens": list(ids)}), "prompt")
    return None if text is None else Elsewhere(client.config.name, text, ids)


def _as_llama_server(client: Client, body: Mapping[str, Any]) -> Elsewhere | None:
    text = _field(_post(client, "/apply-template", body), "prompt")
    if text is None:
        return None
    # As its chat endpoint does: control strings are control tokens, and a BOS is put in front where the model has one.
    given = {"content": text, "add_special": True, "parse_special": True}
    return Elsewhere(client.config.name, text, _ids(_post(client, "/tokenize", given)))


def _post(client: Client, path: str, body: Mapping[str, Any]) -> Any:
    """Return the answer; None from a server that has no such endpoint."""
    try:
        return client.post(path, body, tries=1)
    except EngineError as error:
        if error.kind in ("no such model", "unreadable"):  # a path that is not there is called like a missing model
            return None
        raise


def _field(answer: Any, name: str) -> str | None:
    text = answer.get(name) if isinstance(answer, dict) else None
    return text if isinstance(text, str) else None


def _ids(answer: Any) -> tuple[int, ...] | None:
    ids = answer.get("tokens") if isinstance(answer, dict) else None
    if not isinstance(ids, list) or not ids or not all(type(each) is int for each in ids):
        return None
    return tuple(ids)
