"""The words of the overview, in the session's language: its scripts hold none of their own."""

from __future__ import annotations

from typing import Any

from pages.common.text import _
from pages.live.sampling_lab.labels import stage_titles


def titles() -> dict[str, str]:
    """Return the name of each part of the way."""
    return {
        "text": _("Tokens"),
        "embedding": _("Embedding"),
        "position": _("Position"),
        "blocks": _("Blocks: attention"),
        "lens": _("Prediction after each block"),
        "hidden": _("Hidden state"),
        "chances": _("Logits, softmax"),
        "knobs": _("Reshape"),
        "draw": _("Draw"),
    }


def captions() -> dict[str, str]:
    """Return what happens in each part, in one or two sentences; numbers of this very text stand in the braces."""
    return {
        "text": _(
            "{model} reads numbers, not letters. Its tokenizer splits this text into {n} tokens; {token} is "
            "number {id} of {vocab}."
        ),
        "embedding": _(
            "Each id selects its row of a table with {vocab} rows: {d} learned numbers. {token} has this same "
            "row in every text."
        ),
        "position.rope": _(
            "Nothing is added to the row. In every block, queries and keys are rotated pair by pair: at "
            "position {position} the fastest pair is at {fast}°, the slowest at {slow}°."
        ),
        "position.learned": _(
            "A row of a second table is added, one row for each position. So the vector of a token at position "
            "{position} differs from its vector elsewhere."
        ),
        "position.sinusoidal": _(
            "Sines and cosines of the position are added, at fast and slow frequencies. So the vector of a "
            "token at position {position} differs from its vector elsewhere."
        ),
        "position.alibi": _(
            "Nothing is added to the row. Each score is lowered in proportion to the distance: {bias} in head "
            "{head}, from {token} to {other}."
        ),
        "position.relative": _(
            "Nothing is added to the row. A learned number for the distance is added to each score: {bias} in "
            "head {head}, from {token} to {other}."
        ),
        "position.none": _(
            "This model has no position encoding. Only the mask, which hides later tokens, lets it infer the order."
        ),
        "blocks": _(
            "In block {block}, {token} attends to earlier tokens: {weight} of its attention ({head}) goes to "
            "{other}. What it reads there is added to its own vector."
        ),
        "lens": _(
            "Read through the head, the vector gives a prediction after each block: {first} after the first, "
            "{middle} after block {block}, {last} with {p} after the last."
        ),
        "hidden": _(
            "After {layers} blocks, {token} has become these {d} numbers. Their product with each of the "
            "{vocab} rows of the head is a logit. The largest is {logit}, of {best}."
        ),
        "chances": _(
            "Softmax turns all {vocab} logits into probabilities that sum to 1: {best} gets {p}, {second} {q}."
        ),
        "knobs": _(
            "Temperature {t} changes the probability of {best} from {p} to {now}. Top-k and top-p keep {kept} "
            "of {vocab} tokens; the removed tokens had {removed} together."
        ),
        "draw": _(
            "Random number {nth} of seed {seed} picks one of {kept} tokens in proportion to their "
            "probabilities. The token is appended, and everything starts again with {n} tokens."
        ),
    }


def labels() -> dict[str, Any]:
    """Return every text of the overview; what stands in braces is filled in by its scripts."""
    return {
        "titles": titles(),
        "captions": captions(),
        "short": {"hidden": "h"},  # on screen, where a column is narrow
        "encodings": {
            "rope": _("RoPE: rotates q and k"),
            "learned": _("learned, added"),
            "sinusoidal": _("sine and cosine, added"),
            "alibi": _("ALiBi: lowers scores"),
            "relative": _("T5 bias on scores"),
            "none": _("none"),
        },
        "open": _("Open the page: {page}"),
        "way": _("The pipeline from the text to the next token"),
        "tokens": _("Tokens of the text; choose one to follow"),
        "earlier": _("{n} earlier"),
        "later": _("{n} later"),
        "next": _("next token"),
        "text_note": _("tokens: {n} · ids below {vocab}"),
        "embedding_note": _("{d} numbers each; full colour at ±{limit}"),
        "mean": _("mean"),
        "heads": _("Head"),
        "head": _("head {head}"),
        "mean_of": _("mean of {n} heads"),
        "blocks_of": _("Block; choose one"),
        "after": _("after block {block}: {token} {p}"),
        "candidate": _("{token} {p}, rank {rank}"),
        "candidate_best": _("the most probable token after {n} of {layers} blocks"),
        "weight": _("block {block}, {head}: {from} → {to} {p}"),
        "cell": _("{token}, dimension {i}: {value}"),
        "added": _("{token}, position {position}, dimension {i}: {value} is added"),
        "pair": _("position {position}, pair {i}: rotated by {angle}°"),
        "bias": _("{head}: {value} is added to the score {from} → {to}"),
        "hidden": _("{token}, dimension {i}: {value}"),
        "bars": _("The most probable tokens"),
        "row": _("{token}, id {id}: logit {logit}, softmax {p}, now {now}"),
        "gone": _("removed"),
        "rest": _("{n} others"),
        "temperature": _("Temperature"),
        "top_k": _("Top-k"),
        "top_p": _("Top-p"),
        "off": _("off"),
        "greedy": _("0: greedy"),
        "kept": _("{kept} of {vocab} left · {removed} removed"),
        "others_on": _("also on: {names}"),
        "draw": _("Draw"),
        "back": _("Step back"),
        "restart": _("Start over"),
        "play": _("Play"),
        "stop": _("Stop"),
        "pace": _("Tokens/s"),
        "fast": _("fast"),
        "seed": _("Seed"),
        "drawn": _("u = {u} drew {token}, {p}"),
        "taken": _("{token} was chosen by hand, or came with the link"),
        "falls": _("The seed's next number, {u}, falls on {token}."),
        "one": _("one candidate: the seed has no effect"),
        "take": _("Use as prompt"),
        "take_help": _("The text with the drawn tokens becomes the prompt of every page."),
        "take_changed": _("This text would be split into other tokens if it were tokenized again."),
        "walk": _("Walk me through"),
        "step": _("{place} of {of}"),
        "forward": _("Next"),
        "backward": _("Previous"),
        "end": _("End"),
        "hint": _(
            "Choose a token, a block, a head or a candidate to follow it. Rest the pointer on anything for its exact "
            "value."
        ),
        "stages": stage_titles(),
        "ends": {
            "stop token": _("The text has ended: its last token is a control token."),
            "stop string": _("The text has ended at a stop string."),
            "context full": _("The context is full."),
            "max_new_tokens": _("As many new tokens as allowed; the generation page has the limit."),
        },
        "problems": {
            "overflow": _("These penalties and biases leave no token, or overflow. Use smaller ones."),
            "zero_temperature": _(
                "This engine refuses temperature 0 when sampling. Use more than 0, or the rules of another engine."
            ),
            "no_kernel": _("A stage is on that only the sampling page computes: switch it off there, or look there."),
        },
    }
