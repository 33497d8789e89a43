"""Signatures of thinking blocks: what the simulator writes into them, and reads back.

A signature names the model, the key of what preceded the block (markers and earlier thinking
aside) and the thinking block before it, so that nothing need be remembered between requests. It
is no secret: anyone may forge one. It does tell a changed text and a foreign signature.

Source: provider preserved-thinking page ("What a thinking block is tied to").
"""

from hashlib import blake2b
from typing import Final

from msgspec import Struct

_PREFIX: Final = "sim1"
_SEPARATOR: Final = "."


class Seal(Struct, frozen=True, kw_only=True):
    """What a signature says.

    Attributes:
        model: who produced the block.
        prefix: key of what preceded it, in hex.
        after: label of the thinking block before it, empty for the first.
    """

    model: str
    prefix: str
    after: str


def signature_of(seal: Seal, text: str) -> str:
    """The signature of a block with that text."""
    words = (_PREFIX, seal.prefix, seal.after, _check(seal, text), seal.model)
    return _SEPARATOR.join(words)


def label_of(signature: str) -> str:
    """A short name of a thinking block, ours or not."""
    return blake2b(signature.encode(), digest_size=8).hexdigest()


def read_seal(signature: str, text: str) -> tuple[Seal | None, bool]:
    """What a signature says, and whether it is right.

    Returns:
        The seal, None for a signature that the simulator did not make; and False if it made the
        signature for another text.
    """
    words = signature.split(_SEPARATOR, 4)
    if len(words) != 5 or words[0] != _PREFIX:
        return None, True
    seal = Seal(model=words[4], prefix=words[1], after=words[2])
    return seal, words[3] == _check(seal, text)


def _check(seal: Seal, text: str) -> str:
    told = f"{seal.model}\n{seal.prefix}\n{seal.after}\n{text}"
    return blake2b(told.encode(errors="surrogatepass"), digest_size=8).hexdigest()
