"""Find the codec that a log was written with."""

from typing import Final

from barograph.core.errors import SchemaTooNew
from barograph.core.model import Codec
from barograph.providers.anthropic.codec import AnthropicCodec

_CODECS: Final[tuple[Codec, ...]] = (AnthropicCodec(), AnthropicCodec(respell_arguments=True))


def codec_named(renderer: str) -> Codec:
    """The codec of that renderer name.

    Raises:
        SchemaTooNew: no such renderer here; a newer Barograph wrote the log.
    """
    for codec in _CODECS:
        if codec.renderer == renderer:
            return codec
    known = ", ".join(codec.renderer for codec in _CODECS)
    raise SchemaTooNew(
        f"This log's requests were rendered by {renderer!r}; known here: {known}.",
        next_step="Read it with the version of Barograph that wrote it, or a newer one.",
        renderer=renderer,
    )
