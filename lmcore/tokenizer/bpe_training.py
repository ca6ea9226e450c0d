"""How a byte-level BPE vocabulary is learned, one merge at a time, for looking at.

The rule is that of Sennrich, Haddow and Birch (2016), on bytes: of all pairs of neighbours the most frequent becomes
one token, again and again. Ties go to the pair with the lower ids, as in the `tokenizers` library, so that both learn
the same merges.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from lmcore.tokenizer.byte_alphabet import BYTE_OF_CHARACTER, CHARACTER_OF_BYTE
from lmcore.tokenizer.encoding import utf8
from lmcore.tokenizer.merges import MergeStep, merge
from lmcore.tokenizer.pretrained import PretrainedTokenizer

# As in the library, the byte tokens are numbered in the order of the characters that stand for them.
_BYTES = [bytes([BYTE_OF_CHARACTER[character]]) for character in sorted(BYTE_OF_CHARACTER)]


@dataclass(frozen=True)
class LearnedMerge:
    """One merge that training learned.

    Attributes:
        pair: the two tokens that became one.
        count: how often they stood side by side in the training text.
        n_tokens: how many tokens the training text is after it.
    """

    pair: tuple[bytes, bytes]
    count: int
    n_tokens: int


def split_words(text: str) -> list[bytes]:
    """Return the words of a text as GPT-2 splits it, with their leading spaces; no merge crosses from one to the next.

    >>> split_words("the cat's 12")
    [b'the', b' cat', b"'s", b' 12']

    Raises:
        ValueError: the text holds half of a surrogate pair.
    """
    utf8(text)
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    return [bytes(BYTE_OF_CHARACTER[c] for c in word) for word, _ in splitter.pre_tokenize_str(text)]


def learn_merges(words: Iterable[bytes], min_count: int = 2) -> Iterator[LearnedMerge]:
    """Yield the merges in the order in which they are learned.

    Args:
        words: the words of the training text, repeated as often as they occur.
        min_count: the fewest times that a pair must occur.

    >>> [(merge.pair, merge.count, merge.n_tokens) for merge in learn_merges([b"aab", b"aab", b"ab"])]
    [((b'a', b'b'), 3, 5), ((b'a', b'ab'), 2, 3)]
    """
    tokens = list(_BYTES)
    id_of = {token: token_id for token_id, token in enumerate(tokens)}
    text = _LinkedWords(Counter(words), id_of)
    heap = [(-n, pair) for pair, n in text.counts.items()]
    heapq.heapify(heap)
    while heap:
        minus, pair = heapq.heappop(heap)
        if text.counts[pair] != -minus:  # it changed since, and was put in again with its new count
            continue
        if -minus < min_count:
            return
        joined = tokens[pair[0]] + tokens[pair[1]]
        if joined not in id_of:
            id_of[joined] = len(tokens)
            tokens.append(joined)
        for changed in text.merge(pair, id_of[joined]):
            if text.counts[changed] > 0:
                heapq.heappush(heap, (-text.counts[changed], changed))
        yield LearnedMerge((tokens[pair[0]], tokens[pair[1]]), -minus, text.n_tokens)


class _LinkedWords:
    """The distinct words as linked tokens, so that a merge costs time only where its pair stands.

    Attributes:
        counts: how often each pair of neighbours occurs.
        n_tokens: how many tokens all words are.
    """

    def __init__(self, words: Counter[bytes], id_of: dict[bytes, int]) -> None:
        self._token: list[int] = []
        self._left: list[int] = []  # the place of the neighbour; -1 at a word's edge
        self._right: list[int] = []
        self._times: list[int] = []
        self.counts: Counter[tuple[int, int]] = Counter()
        self._places: defaultdict[tuple[int, int], list[int]] = defaultdict(list)  # some no longer hold
        for word, times in words.items():
            first, last = len(self._token), len(self._token) + len(word) - 1
            for place, byte in enumerate(word, start=first):
                self._token.append(id_of[bytes([byte])])
                self._left.append(place - 1 if place > first else -1)
                self._right.append(place + 1 if place < last else -1)
                self._times.append(times)
                if place > first:
                    self._add(place - 1, place)
        self.n_tokens = sum(self._times)

    def merge(self, pair: tuple[int, int], joined: int) -> set[tuple[int, int]]:
        """Join the pair wherever it stands, from the left, and return the pairs whose count is another now."""
        changed: set[tuple[int, int]] = set()
        for place in sorted(self._places.pop(pair)):
            other = self._right[place]
            if self._token[place] != pair[0] or other < 0 or self._token[other] != pair[1]:
                continue  # one of the two has become part of another token
            before, after = self._left[place], self._right[other]
            for left, right in ((before, place), (place, other), (other, after)):
                if left >= 0 and right >= 0:
                    old = self._token[left], self._token[right]
                    self.counts[old] -= self._times[place]
                    changed.add(old)
            self._token[place], self._token[other] = joined, -1
            self._right[place] = after
            if after >= 0:
                self._left[after] = place
                changed.add(self._add(place, after))
            if before >= 0:
                changed.add(self._add(before, place))
            self.n_tokens -= self._times[place]
        return changed

    def _add(self, left: int, right: int) -> tuple[int, int]:
        pair = self._token[left], self._token[right]
        self.counts[pair] += self._times[left]
        self._places[pair].append(left)
        return pair


def growing(words: Sequence[bytes], pairs: Iterable[tuple[bytes, bytes]]) -> list[MergeStep]:
    """Return how a text is cut as the vocabulary grows: after the first merge, the first two, and so on.

    Args:
        words: the text's words.
        pairs: the merges in the order learned.

    Returns:
        One step a merge, also for one that the text has no use for; its pieces are then those of the step before.

    >>> [step.pieces for step in growing([b"abc"], [(b"b", b"c"), (b"x", b"y")])]
    [[b'a', b'bc'], [b'a', b'bc']]
    """
    now = [[bytes([byte]) for byte in word] for word in words]
    pieces = [piece for word in now for piece in word]
    steps = []
    for rank, pair in enumerate(pairs):
        merged = [merge(word, pair) if pair[0] in word else word for word in now]
        if merged != now:
            now, pieces = merged, [piece for word in merged for piece in word]
        steps.append(MergeStep(rank, pair, pieces))
    return steps


def tokenizer_of(pairs: Iterable[tuple[bytes, bytes]]) -> PretrainedTokenizer:
    """Return the tokenizer that applies merges to text: ids 0 to 255 are bytes, each new token has the next."""
    written = {character: token_id for token_id, character in enumerate(sorted(BYTE_OF_CHARACTER))}
    merges = [tuple("".join(CHARACTER_OF_BYTE[byte] for byte in half) for half in pair) for pair in pairs]
    for left, right in merges:
        written.setdefault(left + right, len(written))
    library = tokenizers.Tokenizer(models.BPE(vocab=written, merges=merges))  # type: ignore[arg-type]
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    library.decoder = decoders.ByteLevel()
    return PretrainedTokenizer(library, "the vocabulary trained here")
