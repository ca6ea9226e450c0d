"""llama-cpp-python's server on SmolLM2: `python -m tests.engines.llama_cpp [port]`; building it takes two minutes.

Built is the library alone, little optimised: what llama.cpp has for programs of its own and for pictures, and full
optimisation, would take six. Any Python can install it, before this project's own environment is there.

The server is given the file's numbers as float32: multiplied with a quantised file, llama.cpp rounds the other side to
8 bits too, and two places with the same weights would be compared by that rounding alone.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tests.engines.servers import FOLDER, KEY, MODEL, Server, free_port, install, main, python_of, smollm_file

NAME = "llama_cpp"
PACKAGE = "llama-cpp-python[server]==0.3.36"
CONTEXT = 512

# llama-cpp-python has the helpers of llama.cpp's programs built whatever it is told; a variable of the inner project
# counts before that.
_LIBRARY_ONLY = "set(LLAMA_BUILD_COMMON OFF)\n"


def installed() -> bool:
    """Whether the server is there."""
    environment = python_of(NAME).parent.parent
    built = any(environment.glob("lib/python*/site-packages/llama_cpp/lib/libllama.*"))
    return built and (environment / "bin" / "uvicorn").exists()


def install_it() -> None:
    """Build and install it."""
    if not any(shutil.which(compiler) for compiler in (os.environ.get("CXX", "c++"), "g++", "clang++")):
        sys.exit("llama.cpp is built here and no C++ compiler is found; on Debian: apt-get install g++")
    FOLDER.mkdir(parents=True, exist_ok=True)
    library_only = FOLDER / "library_only.cmake"
    library_only.write_text(_LIBRARY_ONLY, encoding="utf-8")
    flags = {
        "CMAKE_PROJECT_llama.cpp_INCLUDE": library_only,
        "LLAVA_BUILD": "OFF",
        "CMAKE_C_FLAGS_RELEASE": "-O2",
        "CMAKE_CXX_FLAGS_RELEASE": "-O1",
    }
    arguments = " ".join(f"-D{name}={value}" for name, value in flags.items())
    install(NAME, ["install", PACKAGE], environment={"CMAKE_ARGS": arguments})


def weights() -> Path:
    """Return a GGUF file with the numbers of SmolLM2's in float32, made once: 540 MB."""
    file = FOLDER / "smollm2-float32.gguf"
    if not file.exists():
        from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
        from gguf.quants import dequantize

        FOLDER.mkdir(parents=True, exist_ok=True)
        reader = GGUFReader(smollm_file())
        part = file.with_suffix(f".{os.getpid()}")  # two may make it at once
        writer = GGUFWriter(part, reader.get_field("general.architecture").contents())
        for name, field in reader.fields.items():
            if not name.startswith("GGUF.") and name not in ("general.architecture", "general.file_type"):
                is_list = field.types[0] == GGUFValueType.ARRAY
                writer.add_key_value(name, field.contents(), field.types[0], field.types[-1] if is_list else None)
        writer.add_file_type(0)  # all in float32
        for tensor in reader.tensors:
            numbers = dequantize(tensor.data, tensor.tensor_type)
            writer.add_tensor(tensor.name, numbers, raw_dtype=GGMLQuantizationType.F32)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        part.rename(file)
    return file


def start(port: int | None = None) -> Server:
    """Start it. `logits_all` is what makes it return log-probabilities."""
    port = port or free_port()
    options = {
        "--model": weights(),
        "--model_alias": MODEL,
        "--n_ctx": CONTEXT,
        "--logits_all": "true",
        "--n_threads": 1,
        "--type_k": 0,  # keys and values in float32 as well
        "--type_v": 0,
        "--api_key": KEY,
        "--host": "127.0.0.1",
        "--port": port,
    }
    command = [python_of(NAME), "-m", "llama_cpp.server", *(part for pair in options.items() for part in pair)]
    return Server(command, port, {}, seconds=60)


if __name__ == "__main__":
    main(start, installed, install_it)
