"""A small inference server over real sockets: a built-in model behind the completions interface, in the ways real
servers speak it, and with the faults they have. The truth of all it says is the model itself, at hand in the test."""

from __future__ import annotations

import functools
import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch

import lmcore
from lmcore import chat
from lmcore.distribution import log_softmax
from lmcore.tokenizer.byte_alphabet import CHARACTER_OF_BYTE

KEY = "sk-very-secret-0987654321"


@functools.cache
def model(name: str):
    return lmcore.load(name)


@dataclass
class Behaviour:
    """How the server speaks, and what is wrong with it.

    Attributes:
        model: the built-in model it serves.
        served: the name it serves it under.
        key: what it wants to see; "" for no key.
        names: "id" as vLLM, "text" as llama-cpp-python.
        most: the most log-probabilities it gives; -1 for the vocabulary.
        late: whether its scores of a prompt come one place late, as llama-cpp-python's.
        describes: whether it describes its interface.
        processed: whether its log-probabilities follow the temperature.
        fault: what is wrong at a completion; see `_Handler._fault`.
        faults_left: how often it is wrong; after that it is well.
        after: how many tokens of a stream come before it is wrong.
        seconds_per_token: how long a token takes.
        begins_with: ids that it puts in front of a text it cuts, as a token for the beginning.
        together: how many tokens one event of a stream holds, as vLLM's do when it is ahead of its own socket.
        chats: how it tells what it makes of a conversation: "vllm", "llama-server", or "" for not at all.
        template: its chat template.
        asked: every completion it was asked for.
        at_work: how many completions it is computing.
    """

    model: str = "small-world"
    served: str = "tiny"
    key: str = ""
    names: str = "id"
    most: int = 50
    late: bool = False
    describes: bool = True
    processed: bool = False
    fault: str = ""
    faults_left: int = 10**9
    after: int = 3
    seconds_per_token: float = 0.0
    begins_with: tuple[int, ...] = ()
    together: int = 1
    chats: str = ""
    template: str = "{% for m in messages %}{{ m.content }}<|endoftext|>{% endfor %}"
    asked: list[dict[str, Any]] = field(default_factory=list)
    at_work: int = 0


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


@contextmanager
def serving(behaviour: Behaviour):
    """Serve until the block ends; gives the base URL."""
    handler = type("Handler", (_Handler,), {"behaviour": behaviour, "lock": threading.Lock()})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    behaviour: Behaviour
    lock: threading.Lock
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args) -> None:
        pass

    @property
    def lm(self):
        return model(self.behaviour.model)

    def do_GET(self) -> None:
        if self._refused():
            return
        if self.path == "/v1/models":
            self._send({"data": [{"id": self.behaviour.served, "max_model_len": self.lm.config.context_length}]})
        elif self.path == "/openapi.json" and self.behaviour.describes:
            names = ["prompt", "logprobs", "temperature", "top_p", "top_k", "seed"]
            names += ["prompt_logprobs", "return_tokens_as_token_ids"] if self.behaviour.names == "id" else ["echo"]
            schema = {"properties": {name: {"default": 40} if name == "top_k" else {} for name in names}}
            self._send({"components": {"schemas": {"CompletionRequest": schema}}})
        else:
            self._send({"detail": "Not Found"}, 404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._refused():
            return
        tokenizer = self.lm.tokenizer
        if self.path in ("/apply-template", "/tokenize") and self._tells_chat(body):
            return
        if self.path == "/tokenize" and self.behaviour.names == "id":
            if "prompt" not in body:
                self._send({"error": {"message": "prompt: Field required"}}, 400)
                return
            found = tokenizer.encode(body["prompt"])
            written = ["".join(map(CHARACTER_OF_BYTE.__getitem__, token)) for token in found.tokens]
            ids = [*self.behaviour.begins_with, *found.ids]
            tells = body.get("return_token_strs") and not self.behaviour.begins_with
            self._send({"tokens": ids, "token_strs": written if tells else None})
        elif self.path == "/detokenize" and self.behaviour.names == "id":
            ids = [each for each in body["tokens"] if each not in self.behaviour.begins_with]
            self._send({"prompt": tokenizer.decode_bytes(ids).decode("utf-8", "replace")})
        elif self.path == "/extras/tokenize" and self.behaviour.names == "text":
            self._send({"tokens": [*self.behaviour.begins_with, *tokenizer.encode(body["input"]).ids]})
        elif self.path == "/extras/detokenize" and self.behaviour.names == "text":
            try:
                self._send({"text": tokenizer.decode_bytes(body["tokens"]).decode("utf-8")})
            except UnicodeDecodeError:
                self._send({"error": {"message": "'utf-8' codec can't decode byte"}}, 500)
        elif self.path == "/v1/completions":
            with self.lock:
                self.behaviour.asked.append(body)
                self.behaviour.at_work += 1
            try:
                self._complete(body)
            except (BrokenPipeError, ConnectionResetError):
                pass
            finally:
                with self.lock:
                    self.behaviour.at_work -= 1
        else:
            self._send({"detail": "Not Found"}, 404)

    def _tells_chat(self, body: dict[str, Any]) -> bool:
        """Answer as vLLM's and llama-server's endpoints for conversations do; False where it has none for this."""
        chats, tokenizer = self.behaviour.chats, self.lm.tokenizer
        if chats == "llama-server" and self.path == "/tokenize":
            given = body.get("content", "")  # without one its answer is empty
            found = tokenizer.encode(given, special_tokens=bool(body.get("parse_special")), add_first=False)
            first = self.behaviour.begins_with if body.get("add_special") and given else ()
            self._send({"tokens": [*first, *found.ids]})
            return True
        is_asked = "messages" in body and (self.path == "/tokenize") == (chats == "vllm") and chats != ""
        if is_asked:
            options = {"add_generation_prompt": body["add_generation_prompt"], **body.get("chat_template_kwargs", {})}
            try:
                text = chat.render(self.behaviour.template, body["messages"], tools=body.get("tools"), **options).text
            except chat.TemplateRefused as error:
                self._send({"error": {"message": str(error)}}, 400 if chats == "vllm" else 500)
                return True
            ids = tokenizer.encode(text, special_tokens=True, add_first=False).ids
            self._send({"tokens": ids} if chats == "vllm" else {"prompt": text})
        return is_asked

    def _refused(self) -> bool:
        key = self.behaviour.key
        if key and self.headers.get("Authorization") != f"Bearer {key}":
            self._send({"error": {"message": f"Incorrect API key: {self.headers.get('Authorization')}"}}, 401)
            return True
        return False

    def _send(self, answer: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _faulty(self) -> str:
        with self.lock:
            if not self.behaviour.fault or self.behaviour.faults_left <= 0:
                return ""
            self.behaviour.faults_left -= 1
            return self.behaviour.fault

    def _fault(self, fault: str, body: dict[str, Any]) -> bool:
        """Answer wrongly; return whether that was an answer."""
        if fault in ("429", "500", "503", "404", "400"):
            text = f"overloaded at http://10.1.2.3:8000/v1 with {self.headers.get('Authorization')}"
            self._send({"error": {"message": text}}, int(fault), {"Retry-After": "0"})
        elif fault == "context":
            self._send({"error": {"message": "This model's maximum context length is 512 tokens."}}, 400)
        elif fault == "not json":
            self._send(b"<html>gateway</html>")
        elif fault == "no log-probabilities":
            self._send({"choices": [{"text": "x", "logprobs": None}]})
        elif fault == "no choices":
            self._send({"choices": []})
        elif fault == "slow":
            time.sleep(6)  # longer than a test waits
            self._send({"choices": []})
        elif fault == "hang up":
            self.close_connection = True
            self.connection.close()
        else:
            return False
        return True

    def _complete(self, body: dict[str, Any]) -> None:
        behaviour, lm = self.behaviour, self.lm
        fault = self._faulty()
        if self._fault(fault, body):
            return
        if body.get("model") != behaviour.served:
            self._send({"error": {"message": f"The model `{body.get('model')}` does not exist."}}, 404)
            return
        prompt = body["prompt"]
        if isinstance(prompt, list) and (behaviour.names == "text" or max(prompt) >= lm.config.vocab_size):
            self._send({"error": {"message": "bad prompt"}}, 400)
            return
        ids = prompt if isinstance(prompt, list) else lm.tokenizer.encode(prompt).ids
        asked = body.get("logprobs") or 0
        most = lm.config.vocab_size if behaviour.most < 0 else behaviour.most
        if asked > most or (asked < 0 and behaviour.most >= 0):
            self._send({"error": {"message": f"Requested {asked}, which is greater than max allowed"}}, 400)
            return
        asked = lm.config.vocab_size if asked < 0 else asked
        room = lm.config.context_length - len(ids)
        if room < 1:
            words = "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)"  # vLLM's, with 1 asked for
            self._send({"error": {"message": words}}, 400)
            return
        settings = lmcore.SamplingSettings(
            temperature=body.get("temperature", 1.0),
            top_p=body.get("top_p", 1.0),
            top_k=body.get("top_k") or None,
            seed=body.get("seed", 0),
        )
        steps = lmcore.generate(lm, ids, settings, max_new_tokens=min(body.get("max_tokens", 16), room))
        if body.get("stream"):
            self._stream(steps, asked, settings.temperature, fault)
            return
        logprobs: dict[str, list[Any]] = {"tokens": [], "token_logprobs": [], "top_logprobs": []}
        text = b""
        answer: dict[str, Any] = {"logprobs": logprobs}
        if body.get("echo"):
            self._echo(ids, asked, logprobs)
            text = lm.tokenizer.decode_bytes(ids)
        if body.get("prompt_logprobs") is not None:
            answer["prompt_logprobs"] = self._prompt_scores(ids, body["prompt_logprobs"])
        for step in steps:
            time.sleep(behaviour.seconds_per_token)
            if not (behaviour.late and body.get("echo")):  # llama-cpp-python leaves it out there
                self._add(logprobs, step.token_id, step.logits, asked, settings.temperature)
            text += step.token
        answer["text"] = text.decode("utf-8", "ignore" if behaviour.names == "text" else "replace")
        self._send({"choices": [answer], "usage": {"prompt_tokens": len(ids)}})

    def _stream(self, steps, asked: int, temperature: float, fault: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        checked: dict[str, Any] = {
            "choices": [],
            "prompt_filter_results": [],
        }  # as some send it first, and what it cost at the end
        self.wfile.write(f"data: {json.dumps(checked)}\n\n".encode())
        stream, text = lmcore.TextStream(), ""
        logprobs: dict[str, list[Any]] = {"tokens": [], "token_logprobs": [], "top_logprobs": []}
        for number, step in enumerate(steps):
            time.sleep(self.behaviour.seconds_per_token)
            if number == self.behaviour.after and fault.startswith("stream"):
                if fault == "stream error":
                    self.wfile.write(b'data: {"error": {"message": "the engine is dead", "code": 500}}\n\n')
                elif fault == "stream not json":
                    self.wfile.write(b"data: {{{\n\n")
                elif fault == "stream slow":
                    time.sleep(6)  # longer than a test waits
                return  # "stream broken": the connection closes without a word
            self._add(logprobs, step.token_id, step.logits, asked, temperature)
            text += stream.push(step.token)
            if len(logprobs["tokens"]) < self.behaviour.together:
                continue
            event = {"choices": [{"text": text, "logprobs": logprobs}]}
            logprobs, text = {name: [] for name in logprobs}, ""
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
        self.wfile.write(b'data: {"choices": [], "usage": {"total_tokens": 9}}\n\ndata: [DONE]\n\n')

    def _name(self, token_id: int) -> str:
        if self.behaviour.names == "id":
            return f"token_id:{token_id}"
        return self.lm.tokenizer.token_bytes(token_id).decode("utf-8", "ignore")

    def _add(self, logprobs, token_id: int, logits: torch.Tensor, asked: int, temperature: float = 1.0) -> None:
        if self.behaviour.processed and temperature > 0:
            logits = logits / temperature
        values = log_softmax(logits)
        best = torch.sort(values, descending=True, stable=True).indices[:asked].tolist()
        place = {self._name(each): float(values[each]) for each in best}
        place[self._name(token_id)] = float(values[token_id])
        logprobs["tokens"].append(self._name(token_id))
        logprobs["token_logprobs"].append(float(values[token_id]))
        logprobs["top_logprobs"].append(place)

    def _echo(self, ids: list[int], asked: int, logprobs) -> None:
        logits = self.lm(ids)
        for position, token_id in enumerate(ids):
            self._add(logprobs, token_id, logits[position if self.behaviour.late else max(position - 1, 0)], asked)
        logprobs["token_logprobs"][0] = logprobs["top_logprobs"][0] = None

    def _prompt_scores(self, ids: list[int], asked: int) -> list[Any]:
        places: list[Any] = [None]
        values = log_softmax(self.lm(ids))
        for row, token_id in zip(values, ids[1:], strict=False):
            order = torch.sort(row, descending=True, stable=True).indices.tolist()
            place = {}
            for each in [token_id, *order[:asked]]:
                text = self.lm.tokenizer.token_bytes(each).decode("utf-8", "ignore")
                told = {"logprob": float(row[each]), "rank": order.index(each) + 1, "decoded_token": text}
                place[str(each)] = told
            places.append(place)
        return places
