"""The small world's scenes as token ids, sorted, with their probabilities: what truth and training windows read."""

from functools import lru_cache

import numpy as np

from lmcore.corpus.world import END_OF_TEXT, LANGUAGES, small_world
from lmcore.tokenizer import Tokenizer


class EncodedScenes:
    """Every scene encoded once.

    Attributes:
        ids: [scene, position] int32, rows in lexicographic order, filled up with -1 after a scene's end.
        lengths: [scene] int, the tokens of each scene, its newline included.
        probabilities: [language, scene] float64, the probability of the scene given the language.
        cumulative: [language, scene + 1] float64, entry i the sum of the probabilities before scene i.
        end_of_text: The id of <|endoftext|>.
        newline: The id of the newline that ends each scene and stands nowhere else.
        vocab_size: The tokenizer's.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Encode and sort."""
        if END_OF_TEXT not in tokenizer.special_tokens:
            raise ValueError(
                f"the tokenizer has no special token {END_OF_TEXT}; the small world's documents end with it."
            )
        world = small_world()
        rows = sorted((tokenizer.encode_ids(text).tolist(), text) for text in world.words)
        longest = max(len(ids) for ids, _ in rows)
        self.ids = np.array([ids + [-1] * (longest - len(ids)) for ids, _ in rows], dtype=np.int32)
        self.lengths = np.array([len(ids) for ids, _ in rows])
        self.probabilities = np.array(
            [[world.scenes[language].get(text, 0.0) for _, text in rows] for language in LANGUAGES]
        )
        self.cumulative = np.pad(np.cumsum(self.probabilities, axis=1), ((0, 0), (1, 0)))
        self.end_of_text = tokenizer.special_tokens[END_OF_TEXT]
        (self.newline,) = tokenizer.encode("\n").ids
        self.vocab_size = tokenizer.vocab_size
        if ((self.ids == self.newline).sum(axis=1) != 1).any():
            raise ValueError(
                "the tokenizer joins a newline to other characters; scenes must end with the newline's own token."
            )


@lru_cache(maxsize=4)
def encode_scenes(tokenizer: Tokenizer) -> EncodedScenes:
    """The scenes under this tokenizer, encoded at the first call (a quarter of a second)."""
    return EncodedScenes(tokenizer)
