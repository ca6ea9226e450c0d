"""The exact next-token distribution of the small world, for any prefix: what a perfect model would say."""

from collections.abc import Sequence
from math import log

import numpy as np

from lmcore.corpus.encoded import EncodedScenes, encode_scenes
from lmcore.corpus.world import START, STAY, STOP
from lmcore.tokenizer import Tokenizer

_FIRST = np.array([START, 1 - START])
_AFTER = np.array([[STAY, 1 - STAY], [1 - STAY, STAY]])  # [language of this scene, language of the next]


class Truth:
    """The small world as a perfect language model over a tokenizer's ids.

    A prefix may begin with <|endoftext|>, which starts a document, or directly with a scene; either way the first
    scene is in each language with probability 1/2. It may end anywhere, but must be the tokens that encoding gives.

    Args:
        tokenizer: The tokenizer whose ids are meant.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Encode the scenes, or take them from an earlier use of the same tokenizer."""
        self._scenes = encode_scenes(tokenizer)

    def next_token_probs(self, ids: Sequence[int]) -> np.ndarray | None:
        """The distribution of the token after `ids`.

        Args:
            ids: A prefix; empty is the start of a scene.

        Returns:
            [vocab_size] float64 that sums to 1, or None where the small world never says this prefix.
        """
        place = _Place(self._scenes)
        for token_id in ids:
            if place.push(int(token_id)) == 0.0:
                return None
        return place.distribution()

    def distributions(self, ids: Sequence[int]) -> np.ndarray | None:
        """The distributions after every prefix of `ids`, [len(ids), vocab_size]: after the first token, the second ...

        None where the small world never says `ids`.
        """
        place = _Place(self._scenes)
        found = np.empty((len(ids), self._scenes.vocab_size))
        for i, token_id in enumerate(ids):
            if place.push(int(token_id)) == 0.0:
                return None
            found[i] = place.distribution()
        return found

    def log_prob(self, ids: Sequence[int]) -> np.ndarray:
        """How probable each token was, given those before it.

        Args:
            ids: At least one token.

        Returns:
            [len(ids) - 1] float64, natural logarithms: entry i is ln P(ids[i + 1] | ids[0], ..., ids[i]), aligned
            with the logits of position i. From the first impossible token on, -inf.

        Raises:
            ValueError: ids is empty.
        """
        if len(ids) == 0:
            raise ValueError("ids is empty; give at least one token.")
        place = _Place(self._scenes)
        result = np.full(len(ids) - 1, -np.inf)
        possible = place.push(int(ids[0])) > 0.0
        for i, token_id in enumerate(ids[1:]):
            probability = place.push(int(token_id)) if possible else 0.0
            if probability == 0.0:
                break
            result[i] = log(probability)
        return result

    def entropy_rate(self) -> float:
        """The entropy of the small world in nats per token, exactly.

        Documents are independent of one another, so it is the entropy of a document over its expected tokens. With
        S = 1 / STOP scenes on the average, by symmetry half in each language:

            entropy = S H(scene | language) + H(START) + S H(STOP) + (S - 1) H(STAY)
            tokens  = S (mean tokens of a scene) + 1 for <|endoftext|>
        """
        p = self._scenes.probabilities
        scene_entropy = -np.sum(p * np.log(np.where(p > 0, p, 1.0)), axis=1).mean()
        scenes = 1 / STOP
        entropy = scenes * scene_entropy + _binary(START) + scenes * _binary(STOP) + (scenes - 1) * _binary(STAY)
        return float(entropy / (scenes * self.mean_scene_length() + 1))

    def mean_scene_length(self) -> float:
        """The expected number of tokens of a scene, its newline included, over both languages."""
        return float((self._scenes.probabilities @ self._scenes.lengths).mean())


def _binary(p: float) -> float:
    """The entropy of a choice with probabilities p and 1 - p, in nats."""
    return -p * log(p) - (1 - p) * log(1 - p)


class _Place:
    """A place in the stream of documents, moved on token by token.

    Within a scene it is the rows [low, high) of the sorted scenes that begin with the scene's tokens so far, and how
    probable each language is. Sorting makes these rows neighbours, and cumulative sums give their probability.
    """

    def __init__(self, scenes: EncodedScenes) -> None:
        self._scenes = scenes
        self._stop: float | None = (
            None  # P(<|endoftext|> comes next); None at the very beginning, where it may be given
        )
        self._languages = _FIRST  # P(language of the present scene)
        self._begin_scene()

    def _begin_scene(self) -> None:
        self._low, self._high, self._depth = 0, len(self._scenes.ids), 0
        self._mass = 1.0  # P(the tokens of the present scene so far)

    def push(self, token_id: int) -> float:
        """Go on by one token; return its probability, 0 where it cannot come here (then stay put).

        A first <|endoftext|> is given rather than drawn and has probability 1.
        """
        if token_id == self._scenes.end_of_text:
            probability = 1.0 if self._stop is None else self._stop
            if probability > 0.0:
                self._stop, self._languages = 0.0, _FIRST
                self._begin_scene()
            return probability

        column = self._scenes.ids[self._low : self._high, self._depth]
        low, high = (self._low + int(i) for i in np.searchsorted(column, [token_id, token_id + 1]))
        if low == high:
            return 0.0
        cumulative = self._scenes.cumulative
        mass = float(self._languages @ (cumulative[:, high] - cumulative[:, low]))
        probability = (1.0 - (self._stop or 0.0)) * mass / self._mass
        self._low, self._high, self._depth, self._mass, self._stop = low, high, self._depth + 1, mass, 0.0
        if token_id == self._scenes.newline:
            language = self._languages * self._scenes.probabilities[:, low]
            self._languages, self._stop = language / language.sum() @ _AFTER, STOP
            self._begin_scene()
        return probability

    def distribution(self) -> np.ndarray:
        """The distribution of the next token, [vocab_size] float64."""
        scenes = self._scenes
        rows = slice(self._low, self._high)
        weights = self._languages @ scenes.probabilities[:, rows]
        probs = np.bincount(scenes.ids[rows, self._depth], weights=weights, minlength=scenes.vocab_size)
        stop = self._stop or 0.0
        probs *= (1.0 - stop) / probs.sum()
        probs[scenes.end_of_text] += stop
        return probs
