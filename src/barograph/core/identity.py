"""The identity block: what some accounts must say first, in a block of its own.

A provider may take requests of a subscription account only if the first block of the system field
is a text of its own wording, exactly and alone; a block that says more is refused, in words that
tell nothing. Clients and middlewares merge blocks and cut them, so what the caller's system message
begins with is brought into that form, whatever it was: doing it twice changes nothing. The block
carries no marker; the marker stands at the end of what follows.
"""

from barograph.core.parts import Parts, Text


def identified(system: Parts, identity: str | None) -> Parts:
    """The system parts with the identity text first and alone; unchanged where there is none.

    >>> identified((Text("I am A. Be brief."),), "I am A.")
    (Text(text='I am A.'), Text(text=' Be brief.'))
    """
    if identity is None:
        return system
    return (Text(identity), *_after(system, identity))


def stable_blocks(system: Parts, identity: str | None) -> int:
    """How many blocks may carry the marker at the end of tools + system: all but the identity."""
    return 0 if identity is not None and system == (Text(identity),) else len(system)


def _after(system: Parts, identity: str) -> Parts:
    """What follows the identity text, which one block may say or several; else all of it."""
    left = identity
    for index, part in enumerate(system):
        if not isinstance(part, Text):
            break
        if part.text.startswith(left):
            rest = part.text[len(left) :].lstrip("\r\n")
            more = (Text(rest),) if rest.strip() else ()
            return (*more, *system[index + 1 :])
        if not left.startswith(part.text):
            break
        left = left[len(part.text) :]
    return system
