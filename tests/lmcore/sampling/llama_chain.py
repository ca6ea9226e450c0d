"""llama.cpp's own sampler chain, asked line by line: `python llama_chain.py`, with a Python that has llama-cpp-python.

A line in is JSON [logits, settings, history], a line out the ids that are left and their logits. It stands alone, so
that the package can lie in an environment of its own. No model is needed: a chain is built from the settings and
applied to an array of (id, logit) pairs.
"""

import ctypes
import json
import sys


def apply(llama_cpp, logits, settings, history):
    """Return (id, logit) of the tokens left by the chain in its default order, by id; llama_cpp is the package."""
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    for sampler in (
        llama_cpp.llama_sampler_init_penalties(
            len(logits),
            settings["penalty_last_n"],
            settings["repetition_penalty"],
            settings["frequency_penalty"],
            settings["presence_penalty"],
        ),
        llama_cpp.llama_sampler_init_top_n_sigma(settings["top_n_sigma"] or -1.0),
        llama_cpp.llama_sampler_init_top_k(settings["top_k"] or 0),
        llama_cpp.llama_sampler_init_typical(settings["typical_p"], 1),
        llama_cpp.llama_sampler_init_top_p(settings["top_p"], 1),
        llama_cpp.llama_sampler_init_min_p(settings["min_p"], 1),
        llama_cpp.llama_sampler_init_temp(settings["temperature"]),
    ):
        llama_cpp.llama_sampler_chain_add(chain, sampler)
    try:
        for token in history:
            llama_cpp.llama_sampler_accept(chain, token)
        size = len(logits)
        entries = (llama_cpp.llama_token_data * size)(
            *(llama_cpp.llama_token_data(token, logit, 0.0) for token, logit in enumerate(logits))
        )
        array = llama_cpp.llama_token_data_array(
            ctypes.cast(entries, ctypes.POINTER(llama_cpp.llama_token_data)), size, -1, False
        )
        llama_cpp.llama_sampler_apply(chain, ctypes.byref(array))
        return sorted((array.data[i].id, array.data[i].logit) for i in range(array.size))
    finally:
        llama_cpp.llama_sampler_free(chain)


def main():
    """Say the package's version, then answer each line."""
    import llama_cpp  # not above: whoever looks for doctests here need not have it

    print(json.dumps(llama_cpp.__version__), flush=True)
    for line in sys.stdin:
        print(json.dumps(apply(llama_cpp, *json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
