"""Sources of the turn frame, and the composer that asks them."""

from barograph.frame.composer import Composer
from barograph.frame.source import MODES, Ask, Mode, Source

__all__ = ["MODES", "Ask", "Composer", "Mode", "Source"]
