"""How far every family's numbers are from transformers': `python -m tests.families [family ...]`.

For each tiny random model, as a folder and as a GGUF file, the largest difference in float32 of any logit, any hidden
state and any attention pattern, over two texts of 23 tokens.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import torch
import transformers

import lmcore
from lmcore.language_model import LanguageModel
from tests.lmcore.checkpoints.tiny import CASES, write_folder
from tests.lmcore.checkpoints.tiny_gguf import write_gguf

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


def main(wanted: list[str]) -> None:
    """Print a line for each family and kind of file."""
    print(f"{'family':45}{'file':8}{'logits':>10}{'hidden states':>16}{'patterns':>11}")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = name
        for number, case in enumerate(CASES):
            if wanted and not any(word in case for word in wanted):
                continue
            folder, file = Path(name, f"{number}"), Path(name, f"{number}.gguf")
            made = [("folder", folder, write_folder(case, folder))]
            if case in GGUF_CASES:
                made.append(("GGUF", file, write_gguf(case, file)))
            for kind, path, reference in made:
                found = differences(lmcore.load(path), reference)
                print(
                    f"{case:45}{kind:8}{found['logits']:10.1e}{found['hidden states']:16.1e}{found['patterns']:11.1e}"
                )


if __name__ == "__main__":
    main(sys.argv[1:])
