"""Errors about markers, told from all others, and too many from none at all."""

import pytest

from barograph.core.model import MarkerFault
from barograph.providers.anthropic.codec import AnthropicCodec

TOO_MANY = "A maximum of 4 blocks with cache_control may be provided. Found 6."


def fault(message, status=400):
    return AnthropicCodec().marker_fault(status, message)


def test_too_many_markers_are_counted():
    assert fault(TOO_MANY) == MarkerFault(2)
    assert fault(TOO_MANY.replace("Found 6", "Found 5")) == MarkerFault(1)


@pytest.mark.parametrize(
    "message",
    [
        "messages.0.content.0.cache_control: Extra inputs are not permitted",
        "system.0.cache_control.ttl: Extra inputs are not permitted",
        "tools.3.custom.cache_control: Unknown field",
        "Unsupported parameter: cache_control",
        "'cache_control' does not support this model",
        "additional properties are not allowed ('cache_control' was unexpected)",
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_a_field_that_nobody_knows_means_no_markers_at_all(message, status):
    assert fault(message, status) == MarkerFault(None)


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (TOO_MANY, 429),
        (TOO_MANY, 500),
        (TOO_MANY, None),
        ("prompt is too long: 250000 tokens > 200000 maximum", 400),
        ("tools.0.input_schema: Extra inputs are not permitted", 400),
        (
            "cache_control.ttl: a ttl='1h' block must not come after a ttl='5m' block.",
            400,
        ),
        ("", 400),
    ],
)
def test_other_errors_are_not_about_markers(message, status):
    assert fault(message, status) is None
