"""The printable stand-ins that byte-level BPE files use for the 256 bytes."""


def _byte_characters() -> dict[int, str]:
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    characters = {byte: chr(byte) for byte in printable}
    for byte in range(256):
        if byte not in characters:
            characters[byte] = chr(256 + len(characters) - len(printable))
    return characters


CHARACTER_OF_BYTE = _byte_characters()
"""A byte that prints is written as itself in Latin-1, the others as U+0100, U+0101, ... in order (as in GPT-2)."""

BYTE_OF_CHARACTER = {character: byte for byte, character in CHARACTER_OF_BYTE.items()}
_NO_STAND_IN = 0xFFFF  # beyond Latin-1, so that encoding refuses it
_CODE_OF_CODE = dict.fromkeys(range(256), _NO_STAND_IN) | {ord(c): byte for c, byte in BYTE_OF_CHARACTER.items()}


def to_bytes(written: str) -> bytes:
    """The bytes of a token as it is written in a tokenizer file.

    Raises:
        ValueError: for a character that stands for no byte.

    >>> to_bytes("Ġcat")
    b' cat'
    """
    return written.translate(_CODE_OF_CODE).encode("latin-1")
