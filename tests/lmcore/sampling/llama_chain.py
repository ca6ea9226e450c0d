"""llama.cpp's own sampler chain, asked line by line: `python llama_chain.py`, with a Python that has llama-cpp-python.

A line in is JSON [logits, settings, history, draws], a line out what is left at each draw: the ids and their logits,
and the id drawn where a sampler of the chain draws one. It stands alone, so that the package can lie in an environment
of its own. No model is needed: a chain is built from the settings and applied to an array of (id, logit) pairs.
"""

import ctypes
import json
import sys


def samplers(llama_cpp, size, settings):
    """Yield the samplers of llama.cpp's default chain that the settings have, in its order."""
    heat = llama_cpp.llama_sampler_init_temp_ext(
        settings["temperature"], settings["dynatemp_range"], settings["dynatemp_exponent"]
    )
    tau, eta = settings["mirostat_tau"], settings["mirostat_eta"]
    if settings["mirostat"] == 1:
        return [heat, llama_cpp.llama_sampler_init_mirostat(size, settings["seed"], tau, eta, 100)]
    if settings["mirostat"] == 2:
        return [heat, llama_cpp.llama_sampler_init_mirostat_v2(settings["seed"], tau, eta)]
    chain = [
        llama_cpp.llama_sampler_init_penalties(
            size,
            settings["penalty_last_n"],
            settings["repetition_penalty"],
            settings["frequency_penalty"],
            settings["presence_penalty"],
        ),
        llama_cpp.llama_sampler_init_dry(
            None,
            settings["dry_multiplier"],
            settings["dry_base"],
            settings["dry_allowed_length"],
            settings["dry_penalty_last_n"],
            None,
            0,
        ),
        llama_cpp.llama_sampler_init_top_n_sigma(settings["top_n_sigma"] or -1.0),
        llama_cpp.llama_sampler_init_top_k(settings["top_k"] or 0),
        llama_cpp.llama_sampler_init_typical(settings["typical_p"], 1),
        llama_cpp.llama_sampler_init_top_p(settings["top_p"], 1),
        llama_cpp.llama_sampler_init_min_p(settings["min_p"], 1),
        llama_cpp.llama_sampler_init_xtc(settings["xtc_probability"], settings["xtc_threshold"], 1, settings["seed"]),
        heat,
    ]
    if settings["adaptive_target"] >= 0:
        target, decay = settings["adaptive_target"], settings["adaptive_decay"]
        chain.append(llama_cpp.llama_sampler_init_adaptive_p(target, decay, settings["seed"]))
    return chain


def apply(llama_cpp, logits, settings, history, draws):
    """Return, for each of several draws from the same logits, [(id, logit) of the tokens left, by id; the id drawn].

    llama_cpp is the package. The chain is told of each token drawn; the id is None where nothing draws.
    """
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    for sampler in samplers(llama_cpp, len(logits), settings):
        llama_cpp.llama_sampler_chain_add(chain, sampler)
    found = []
    try:
        for token in history:
            llama_cpp.llama_sampler_accept(chain, token)
        size = len(logits)
        for _draw in range(draws):
            entries = (llama_cpp.llama_token_data * size)(
                *(llama_cpp.llama_token_data(token, logit, 0.0) for token, logit in enumerate(logits))
            )
            array = llama_cpp.llama_token_data_array(
                ctypes.cast(entries, ctypes.POINTER(llama_cpp.llama_token_data)), size, -1, False
            )
            llama_cpp.llama_sampler_apply(chain, ctypes.byref(array))
            drawn = array.data[array.selected].id if array.selected >= 0 else None
            if drawn is not None:
                llama_cpp.llama_sampler_accept(chain, drawn)
            found.append([sorted((array.data[i].id, array.data[i].logit) for i in range(array.size)), drawn])
        return found
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
