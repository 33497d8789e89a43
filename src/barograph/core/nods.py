"""Messages of the user that ask for nothing: "ok", "thanks", "go on"."""

import re
from typing import Final

from barograph.core.parts import Parts, Text

_MOST_WORDS: Final = 6
_MOST_CHARS: Final = 80
_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
# fmt: off
_AGREEING: Final = frozenset({
    "ok", "okay", "k", "kk", "yes", "y", "yep", "yup", "yeah", "sure", "fine", "good", "great",
    "nice", "cool", "perfect", "right", "alright", "lgtm", "sounds", "thanks", "thank", "thx",
    "you", "please", "pls", "continue", "proceed", "resume", "go", "on", "ahead", "carry", "keep",
    "going", "next", "more", "do", "it", "so", "and", "then", "now", "just",
    "ja", "gut", "weiter", "oui", "continuez", "sí", "sigue", "continúa", "vale", "sim",
    "好", "好的", "继续", "はい", "続けて",
})
# fmt: on


def is_nod(parts: Parts) -> bool:
    """Whether a message is text alone, short, and made of words of agreement only."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    if len(texts) < len(parts) or sum(map(len, texts)) > _MOST_CHARS:
        return False
    words = _WORD.findall(" ".join(texts).casefold())
    return len(words) <= _MOST_WORDS and all(word in _AGREEING for word in words)
