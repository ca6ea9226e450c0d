"""llama-cpp-python's server on SmolLM2: `python -m tests.engines.llama_cpp [port]`; building it takes six minutes."""

from __future__ import annotations

from tests.engines.servers import KEY, MODEL, Server, free_port, install, main, python_of, smollm_file

NAME = "llama_cpp"
PACKAGE = "llama-cpp-python[server]==0.3.36"
CONTEXT = 512


def installed() -> bool:
    """Whether the server is there."""
    return (python_of(NAME).parent / "uvicorn").exists()


def install_it() -> None:
    """Build and install it."""
    install(NAME, ["install", PACKAGE])


def start(port: int | None = None) -> Server:
    """Start it. `logits_all` is what makes it return log-probabilities."""
    port = port or free_port()
    options = {
        "--model": smollm_file(),
        "--model_alias": MODEL,
        "--n_ctx": CONTEXT,
        "--logits_all": "true",
        "--n_threads": 1,
        "--api_key": KEY,
        "--host": "127.0.0.1",
        "--port": port,
    }
    command = [python_of(NAME), "-m", "llama_cpp.server", *(part for pair in options.items() for part in pair)]
    return Server(command, port, {}, seconds=60)


if __name__ == "__main__":
    main(start, installed, install_it)
