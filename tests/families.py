"""How far every family's numbers are from transformers': `python -m tests.families [--views] [family ...]`.

For each tiny random model, as a folder and as a GGUF file, the largest difference in float32 of any logit, any hidden
state and any attention pattern, over two texts of 23 tokens. With --views, every view of every page is opened with it
too, in this process, and what fails or says that something is wrong is printed; half a minute a model.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import tempfile
from pathlib import Path

import torch
import transformers

import lmcore
from lmcore.language_model import LanguageModel
from lmcore.loading import FOLDER_VARIABLE
from tests.browser.views import VIEWS
from tests.lmcore.checkpoints.tiny import CASES, write_folder
from tests.lmcore.checkpoints.tiny_gguf import write_gguf
from tests.pages.views import wrong_views

NOT_IN_GGUF = ("soft cap", "windows", "mistral", "low limit")
"""Words of cases whose config GGUF files cannot say: Gemma 3's cap, the windows of Qwen 2 and Mistral, a limit."""

GGUF_CASES = [case for case in CASES if not any(word in case for word in NOT_IN_GGUF) or "without windows" in case]


@torch.inference_mode()
def differences(lm: LanguageModel, reference: torch.nn.Module) -> dict[str, float]:
    """Return the largest absolute difference of logits, hidden states and patterns."""
    ids = torch.randint(0, lm.config.vocab_size, (2, 23), generator=torch.Generator().manual_seed(3))
    theirs = reference(ids, output_hidden_states=True, output_attentions=True)
    trace = lmcore.Trace()
    logits = lm(ids, trace=trace)
    hidden = [trace[f"blocks.{i}.resid_pre"] for i in range(lm.config.n_layers)] + [trace["hidden_state"]]
    patterns = [trace[f"blocks.{i}.attn.pattern"] for i in range(lm.config.n_layers)]
    return {
        "logits": _apart([logits], [theirs.logits]),
        "hidden states": _apart(hidden, theirs.hidden_states),
        "patterns": _apart(patterns, theirs.attentions),
    }


def _apart(ours: list[torch.Tensor], theirs: list[torch.Tensor] | tuple[torch.Tensor, ...]) -> float:
    return max((a - b).abs().max().item() for a, b in zip(ours, theirs, strict=True))


def main() -> None:
    """Print a line for each family and kind of file."""
    parser = argparse.ArgumentParser(prog="python -m tests.families", description=__doc__.partition("\n")[0])
    parser.add_argument("--views", action="store_true", help="open every view of every page with each")
    parser.add_argument("family", nargs="*", help="words of the families wanted; all when none is given")
    given = parser.parse_args()
    print(
        f"{'family':45}{'file':8}{'logits':>10}{'hidden states':>16}{'patterns':>11}{'views' if given.views else '':>8}"
    )
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    logging.disable(logging.WARNING)  # Streamlit's, of pages without a browser
    with tempfile.TemporaryDirectory() as name:
        os.environ |= {"XDG_CACHE_HOME": name, FOLDER_VARIABLE: str(Path(name, "models"))}
        for number, case in enumerate(CASES):
            if given.family and not any(word in case for word in given.family):
                continue
            folder, file = (Path(name, "models", f"{number}-{ending}") for ending in ("folder", "file.gguf"))
            made = [("folder", folder, write_folder(case, folder))]
            if case in GGUF_CASES:
                made.append(("GGUF", file, write_gguf(case, file)))
            gc.freeze()  # else Streamlit looks through all of transformers after each run of a page
            for kind, path, reference in made:
                found = differences(lmcore.load(path), reference)
                line = (
                    f"{case:45}{kind:8}{found['logits']:10.1e}{found['hidden states']:16.1e}{found['patterns']:11.1e}"
                )
                if not given.views:
                    print(line, flush=True)
                    continue
                address = {"model": path.name.removesuffix(".gguf"), "prompt": "the cat sat"}
                wrong = {page: views for page in VIEWS if (views := wrong_views(page, **address))}
                sound = sum(len(each) for _key, each in VIEWS.values()) - sum(map(len, wrong.values()))
                print(f"{line}{sound:8}", flush=True)
                for page, views in wrong.items():
                    for view, why in views.items():
                        print(f"    {page} {view}: {why}", flush=True)


if __name__ == "__main__":
    main()
