"""Record exchanges as files from which a stranger can recompute every figure.

Three files per HTTP request, numbered from 1: `0001.request.json` (the exact bytes),
`0001.response.json` (the JSON form of the answer) and `0001.meta.json` (clock, session, account
label, headers without secrets, status, usage, cost and the prompt block by block).
"""

from pathlib import Path

import msgspec

from barograph.providers.anthropic.models import facts_of
from barograph.simulator.exchange import Exchange
from barograph.simulator.prices import cost_usd


class Recorder:
    """Writes exchanges into a folder, which is made if it is missing.

    Args:
        folder: where the files go; files of the same numbers are overwritten.

    Raises:
        OSError: the folder cannot be made, or later a file cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def record(self, exchange: Exchange) -> None:
        """Write the files of one exchange."""
        stem = f"{exchange.number:04d}"
        (self._folder / f"{stem}.request.json").write_bytes(exchange.request)
        (self._folder / f"{stem}.response.json").write_bytes(exchange.response)
        meta = msgspec.json.format(msgspec.json.encode(_meta(exchange)), indent=2)
        (self._folder / f"{stem}.meta.json").write_bytes(meta)


def _meta(exchange: Exchange) -> dict[str, object]:
    cost = None
    if exchange.usage is not None:
        cost = cost_usd(exchange.usage, facts_of(exchange.model))
    return {
        "number": exchange.number,
        "session": exchange.session,
        "index": exchange.index,
        "attempt": exchange.attempt,
        "now_seconds": exchange.now_seconds,
        "account": exchange.account,
        "model": exchange.model,
        "headers": dict(exchange.headers),
        "status": exchange.status,
        "request_id": exchange.request_id,
        "streamed": exchange.streamed,
        "fault": exchange.fault,
        "usage": exchange.usage,
        "total_tokens": exchange.total_tokens,
        "cost_usd": cost,
        "hit": exchange.hit,
        "blocks": [
            {
                "prefix_key": block.prefix_key.hex(),
                "tokens": block.tokens,
                "level": block.level,
                "kind": block.kind,
                "eligible": block.eligible,
                "marker": block.marker,
            }
            for block in exchange.blocks
        ],
    }
