"""A loopback provider with the real one's cache rules, limits and prices, and scripted models.

Stock clients use it by its base URL alone (`Simulator`); drivers that need no socket call the
state machine directly (`SimulatedProvider.handle`). Names load on first use, so the cache rules
can be imported without the server's libraries.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from barograph.simulator.cache import PromptCache
    from barograph.simulator.exchange import Exchange
    from barograph.simulator.faults import Fault
    from barograph.simulator.prefix import PromptBlock
    from barograph.simulator.prices import cost_usd, input_equivalents
    from barograph.simulator.provider import SimulatedProvider
    from barograph.simulator.record import Recorder
    from barograph.simulator.script import Reply, Script
    from barograph.simulator.server import Simulator
    from barograph.simulator.switches import Switches
    from barograph.simulator.tokens import TokenRule

__all__ = [
    "Exchange",
    "Fault",
    "PromptBlock",
    "PromptCache",
    "Recorder",
    "Reply",
    "Script",
    "SimulatedProvider",
    "Simulator",
    "Switches",
    "TokenRule",
    "cost_usd",
    "input_equivalents",
]

_HOMES: Final = {
    "Exchange": "exchange",
    "Fault": "faults",
    "PromptBlock": "prefix",
    "PromptCache": "cache",
    "Recorder": "record",
    "Reply": "script",
    "Script": "script",
    "SimulatedProvider": "provider",
    "Simulator": "server",
    "Switches": "switches",
    "TokenRule": "tokens",
    "cost_usd": "prices",
    "input_equivalents": "prices",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
