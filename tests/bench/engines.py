"""Many sessions generating through one engine: what the explorer adds to the engine's own time per token.

    python -m tests.bench.engines [sessions] [seconds per token] [tokens]

The engine is a real HTTP server in a process of its own that takes a fixed time per token and writes its clock into
each event; it computes nothing, so that all the time beyond is the explorer's and the machine's. Measured twice: in one
Python process without pages, and in the real server with one websocket a session on the generation page, which looks at
its run as often as it is told to. A bare socket in a process of its own reads one more stream at the same time: what it
waits for is the machine's. Meanwhile another session moves a slider on a local page, with and without an engine that
never answers being asked by a third.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.bench.sessions import ROOT, Server, Session
from tests.engines.servers import free_port

LIMIT = 0.020  # seconds that the explorer may add to a token, of 95 in 100
V = 1000


def serve(port: int, seconds_per_token: float) -> None:
    """Answer as vLLM does, each token after a fixed time."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := (await reader.readline()).split():
                length = 0
                while line := (await reader.readline()).strip():
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                body = json.loads(await reader.readexactly(length)) if length else {}
                path = request[1].decode()
                if path == "/v1/completions" and body.get("stream"):
                    await stream(writer, body)
                    break
                content = json.dumps(plain(path, body) or {"error": {"message": "no"}}).encode()
                status = b"200 OK" if plain(path, body) else b"400 Bad"
                head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                writer.write(head % (status, len(content)) + content)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def stream(writer: asyncio.StreamWriter, body: dict) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        due = time.monotonic()
        for number in range(body["max_tokens"]):
            due += seconds_per_token
            await asyncio.sleep(max(due - time.monotonic(), 0))
            event = {"choices": [{"text": f" t{number % V}", "logprobs": place(number % V)}], "sent": time.time()}
            writer.write(f"data: {json.dumps(event)}\n\n".encode())
            await writer.drain()
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()

    def place(token: int, n: int = 20) -> dict:
        best = {f"token_id:{(token + k) % V}": -1.0 - k / 10 for k in range(n)}
        return {"tokens": [f"token_id:{token}"], "token_logprobs": [-1.0], "top_logprobs": [best]}

    def plain(path: str, body: dict) -> dict | None:
        if path == "/v1/models":
            return {"data": [{"id": "m", "max_model_len": 4096}]}
        if path == "/tokenize":
            return {"tokens": [1, 2, 3]}
        if path == "/detokenize":
            return {"prompt": f" t{body['tokens'][0]}"}
        if path == "/v1/completions":
            prompt = body["prompt"]
            if (body.get("logprobs") or 0) > 20 or (isinstance(prompt, list) and max(prompt) >= V):
                return None
            return {"choices": [{"text": " t7", "logprobs": place(7, max(body.get("logprobs") or 1, 1))}]}
        return None

    async def run() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", port, backlog=1024) as server:
            await server.serve_forever()

    asyncio.run(run())


def silent(port: int) -> None:
    """Accept connections and say nothing."""

    async def run() -> None:
        async with await asyncio.start_server(lambda *_: asyncio.sleep(3600), "127.0.0.1", port) as server:
            await server.serve_forever()

    asyncio.run(run())


def bare(port: int, tokens: int, results: multiprocessing.Queue) -> None:
    """Read one stream from a plain socket; put what each token waited for into the queue."""
    body = json.dumps({"prompt": "x", "max_tokens": tokens, "stream": True}).encode()
    waited = []
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as lines:
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        for line in lines:
            if line.startswith(b"data: {"):
                waited.append(time.time() - json.loads(line[6:])["sent"])
    results.put(waited)


@contextlib.contextmanager
def beside_a_bare_socket(port: int, tokens: int) -> Iterator[None]:
    """Report what a bare socket waited for meanwhile."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=bare, args=(port, tokens, results), daemon=True)
    process.start()
    yield
    report("  a bare socket at the same time", results.get(timeout=120))
    process.join()


def without_pages(port: int, sessions: int, tokens: int) -> list[float]:
    """Return what each token waited for, with nothing but lmcore."""
    from lmcore.engines import engine as module
    from lmcore.engines.config import EngineConfig
    from lmcore.generation.engine_run import EngineRun
    from tests.bench import engine_probe

    module.choice_of = engine_probe.noting
    engine = module.Engine(EngineConfig("E", f"http://127.0.0.1:{port}/v1", "m"))
    runs = [EngineRun(engine, f"prompt {n}") for n in range(sessions)]
    gc.collect()
    gc.freeze()  # as the explorer does when it opens an engine
    for run in runs:
        run.max_new_tokens = tokens
        run.start()
    for run in runs:
        run.wait(600)
        assert run.error is None and run.node.depth == tokens, run.error
    engine.close()
    return engine_probe.SECONDS


class Generating(threading.Thread):
    """A session that presses Run and looks at it, as its page does, until it is over."""

    def __init__(self, server: Server, number: int, tokens: int) -> None:
        super().__init__(daemon=True)
        self.session = Session(
            server, "generation", lang="en", model="E", prompt=f"p {number}", max_new_tokens=str(tokens)
        )
        self.session.run()
        self.seconds: list[float] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            time.sleep(random.uniform(0, 5))  # a class does not press Run in step
            messages = self.session.press("generation.engine.run")
            fragment = self.session.fragment_of("generation.engine.text")
            pause = next(m.auto_rerun.interval for m in messages if m.HasField("auto_rerun"))
            for _look in range(10_000):
                started = time.perf_counter()
                messages = self.session.run(fragment)
                self.seconds.append(time.perf_counter() - started)
                if "As many new tokens as allowed" in str(messages):
                    return
                time.sleep(pause)
        except Exception as error:  # told by the main thread
            self.error = error


def local_page(server: Server, seconds: float) -> list[float]:
    """Return what a slider's release takes on a local page meanwhile."""
    session = Session(server, "blocks", lang="en", prompt="The king")
    session.run()
    taken, until, number = [], time.monotonic() + seconds, 0
    while time.monotonic() < until:
        number += 1
        started = time.perf_counter()
        session.set("layer", number % 4)
        taken.append(time.perf_counter() - started)
        time.sleep(0.3)
    session.close()
    return taken


def with_pages(port: int, silent_port: int, sessions: int, tokens: int, seconds_per_token: float) -> None:
    """Print what each token waits for in the real server, and what a local page takes meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        file, times = Path(folder) / "engines.toml", Path(folder) / "times"
        table = '[[engine]]\nname = "{name}"\nbase_url = "http://127.0.0.1:{port}/v1"\nmodel = "m"\n'
        file.write_text(table.format(name="E", port=port) + table.format(name="Silent", port=silent_port))
        web = free_port()
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.engine_probe", str(web), str(times)],
            cwd=ROOT,
            env=os.environ | {"GLASS_BOX_LM_ENGINES": str(file)},
            stdout=subprocess.DEVNULL,
        )
        server = Server(web, process, 0)
        while True:
            try:
                urllib.request.urlopen(f"http://localhost:{web}/_stcore/health").close()
                break
            except OSError:
                time.sleep(0.2)
        report("a slider on a local page, alone", local_page(server, 5))
        waiting = threading.Thread(target=_ask_silent, args=(server,), daemon=True)
        waiting.start()
        time.sleep(1)
        report("  while another session waits for an engine that never answers", local_page(server, 5))
        everyone = [Generating(server, number, tokens) for number in range(sessions)]
        used, started = server.processor_seconds(), time.perf_counter()
        for each in everyone:
            each.start()
        with beside_a_bare_socket(port, tokens):
            report(f"  while {sessions} sessions generate", local_page(server, tokens * seconds_per_token))
        for each in everyone:
            each.join()
        lost = [each for each in everyone if each.error is not None]
        print(f"{sessions} sessions of the real server, {len(lost)} lost" + (f": {lost[0].error!r}" if lost else ""))
        spent, took = server.processor_seconds() - used, time.perf_counter() - started
        print(f"  processor: {spent / took:.2f} cores for {took:.0f} s")
        report("  a look at a run", [second for each in everyone for second in each.seconds])
        process.send_signal(signal.SIGUSR1)
        process.wait(20)
        report("  from the engine to the text, a token", [float(line) for line in times.read_text().split()], LIMIT)


def _ask_silent(server: Server) -> None:
    with contextlib.suppress(Exception):  # it waits until the bench is over
        Session(server, "tokenization", lang="en", model="Silent", prompt="x").run()


def report(what: str, seconds: list[float], limit: float | None = None) -> None:
    """Print the median and what 95 of 100 stay below."""
    ordered = sorted(seconds)
    p95 = ordered[int(0.95 * (len(ordered) - 1))]
    verdict = "" if limit is None else f" (at most {1000 * limit:.0f}: {'met' if p95 <= limit else 'MISSED'})"
    print(f"{what}: {len(ordered)} times, median {1000 * ordered[len(ordered) // 2]:.1f} ms, p95 {1000 * p95:.1f} ms{verdict}", flush=True)  # fmt: skip  # noqa: E501


def main() -> None:
    """Print what the explorer adds."""
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    seconds_per_token = float(sys.argv[2]) if len(sys.argv) > 2 else 0.05
    tokens = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    port, silent_port = free_port(), free_port()
    context = multiprocessing.get_context("spawn")
    engines = [
        context.Process(target=serve, args=(port, seconds_per_token), daemon=True),
        context.Process(target=silent, args=(silent_port,), daemon=True),
    ]
    for each in engines:
        each.start()
    time.sleep(1)
    print(f"an engine of {1 / seconds_per_token:.0f} tokens a second for each of {sessions} sessions, {tokens} tokens")
    with beside_a_bare_socket(port, tokens):
        report("lmcore alone: from the engine to the text, a token", without_pages(port, sessions, tokens), LIMIT)
    with_pages(port, silent_port, sessions, tokens, seconds_per_token)
    for each in engines:
        each.terminate()


if __name__ == "__main__":
    main()
