"""Byte-pair merges replayed one at a time, for looking at; encoding itself is done by the tokenizers library."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class MergeStep:
    """One merge, applied everywhere it fits.

    Args:
        rank: The merge's place in the list that training learned; the lowest rank that fits goes first.
        pair: The two neighbours that became one.
        pieces: All pieces after this merge; joined they are the text's bytes.
        runners_up: The other pairs of neighbours that could have merged at this moment, with their ranks, the next best
            first.
    """

    rank: int
    pair: tuple[bytes, bytes]
    pieces: list[bytes]
    runners_up: tuple[tuple[int, tuple[bytes, bytes]], ...] = ()


def replay(data: bytes, ranks: Mapping[tuple[bytes, bytes], int]) -> list[MergeStep]:
    """Merge from single bytes until no pair of neighbours has a rank.

    Args:
        data: The bytes of the text.
        ranks: The rank of each pair that may merge.

    Returns:
        The steps in order; empty where nothing merges, so that the tokens are the single bytes.

    >>> [step.pieces for step in replay(b"abab", {(b"a", b"b"): 0, (b"ab", b"ab"): 1})]
    [[b'ab', b'ab'], [b'abab']]
    """
    return replay_words([[bytes([byte]) for byte in data]], ranks)


def replay_words(words: Sequence[list[bytes]], ranks: Mapping[tuple[bytes, bytes], int]) -> list[MergeStep]:
    """Merge within each word until no pair of neighbours in one has a rank.

    Args:
        words: the pieces that each word starts from; no merge crosses from one into the next.
        ranks: the rank of each pair that may merge.

    Returns:
        The steps in order, each with the pieces of all words.

    >>> [step.pieces for step in replay_words([[b"a", b"b"], [b"b", b"a", b"b"]], {(b"a", b"b"): 0, (b"ab", b"b"): 1})]
    [[b'ab', b'b', b'ab']]
    """
    words = list(words)
    steps = []
    while fitting := {
        pair: ranks[pair] for word in words for pair in zip(word, word[1:], strict=False) if pair in ranks
    }:
        (rank, pair), *others = sorted((rank, pair) for pair, rank in fitting.items())
        words = [merge(word, pair) for word in words]
        steps.append(MergeStep(rank, pair, [piece for word in words for piece in word], tuple(others)))
    return steps


def merge(pieces: list[bytes], pair: tuple[bytes, bytes]) -> list[bytes]:
    """Join every occurrence of the pair, from the left.

    >>> merge([b"a", b"a", b"a"], (b"a", b"a"))
    [b'aa', b'a']
    """
    merged: list[bytes] = []
    i = 0
    while i < len(pieces):
        if i + 1 < len(pieces) and (pieces[i], pieces[i + 1]) == pair:
            merged.append(pieces[i] + pieces[i + 1])
            i += 2
        else:
            merged.append(pieces[i])
            i += 1
    return merged
