"""What the product cannot do yet, and which words of the cases need it.

A case that needs such a capability is never passed. Where it cannot be played at all it is skipped;
where it can, it is played, everything that does not depend on the capability must hold, and then it
is skipped with what held. Each entry names the place where the capability will live: once that
exists, the entry is out of date and a test says so. One without a place waits for nothing but its
adapter here.
"""

from importlib.util import find_spec
from typing import NamedTuple

from barograph import Policy


class Capability(NamedTuple):
    """Something that is not there yet.

    `blocks` are words without which there is nothing to play. `touches` are words that change what
    happens in a run. `properties` are checks that look at nothing else; a check with a colon is one
    with that argument. `clouds` are checks that cannot be judged in a run that is touched.
    """

    name: str
    reason: str
    home: str
    blocks: frozenset[str] = frozenset()
    touches: frozenset[str] = frozenset()
    properties: frozenset[str] = frozenset()
    clouds: frozenset[str] = frozenset()


def _words(text):
    return frozenset(text.split())


NOT_YET = (
    Capability(
        "rules of providers",
        "no case here says what such a rule looks like",
        "",
        blocks=_words("input:provider_rule"),
    ),
    Capability(
        "metrics",
        "nothing is flagged beside the log",
        "barograph.telemetry",
        properties=_words("telemetry_flag"),
    ),
    Capability(
        "redaction",
        "secrets are logged as they come",
        "barograph.core.policy:redact",
        touches=_words("setting:redact"),
        properties=_words("secrets_absent"),
    ),
    Capability(
        "lifetimes by agent",
        "subagents log and cache under the policy of their parent",
        "barograph.core.policy:subagent_ttl",
        touches=_words("setting:subagent_cache_ttl"),
        clouds=_words("ttl_of"),
    ),
    Capability(
        "OpenAI codec",
        "models of other providers are left as they are",
        "barograph.providers.openai",
        blocks=_words(
            "form:openai form:openai-responses form:openai_responses form:responses"
            " input:items input:drop_round"
        ),
        touches=_words("usage:openai usage:openai-responses usage:google usage:bedrock"),
        properties=_words("reasoning_pairs_valid outputs_have_calls"),
    ),
    Capability(
        "report of a torn append",
        "the database rolls an append back that was never acknowledged, and nobody says so",
        "barograph.store.salvage",
        properties=_words("reported"),
    ),
)

# Words that are heeded by nothing: how much stays and how long a summary is, is not to be set so.
RELIEF_WORDS = _words("setting:keep_messages setting:summary_max_chars input:summariser")


def blocking(words):
    """Capabilities without which there is nothing to play."""
    return [one for one in NOT_YET if one.blocks & words]


def touched_by(words):
    """Capabilities that would have changed what happened in the run."""
    return [one for one in NOT_YET if one.touches & words]


def judged_elsewhere(prop, touched):
    """The capability that a property waits for, or None where it can be judged now."""
    name = prop["prop"]
    arguments = [value for value in prop.values() if isinstance(value, str)]
    keys = {name, *(f"{name}:{value}" for value in arguments)}
    for one in NOT_YET:
        if keys & one.properties or (one in touched and keys & one.clouds):
            return one
    return None


def known_words():
    """Every word that some capability will understand."""
    return RELIEF_WORDS.union(*(one.blocks | one.touches for one in NOT_YET))


def is_grown(capability):
    """Whether the place where a capability is to live exists: a module, or a knob of the policy."""
    if not capability.home:
        return False
    module, _, knob = capability.home.partition(":")
    if knob:
        return knob in Policy.__struct_fields__
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
