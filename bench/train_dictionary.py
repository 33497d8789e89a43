"""Makes the dictionary that events are compressed with, from events that no recording holds.

A dictionary is part of the layout of stores: what one wrote, only the same one reads. So this is
run once for a new version of it, never to renew one that was released.
"""

import random
import string
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
import zstandard

from barograph.store.codec import encode_events
from synthetic import synthetic_appends

_BYTES: Final = 8192
_ROUNDS: Final = 600
_ID: Final = string.ascii_letters + string.digits
_TOOLS: Final = ("Bash", "Read", "Edit", "Grep", "Write", "search", "shell", "fetch", "Task")
_ARGUMENTS: Final = ("command", "file_path", "pattern", "description", "query", "path", "url")
_PATHS: Final = ("main", "main", "main", "main/Task#1", "main/researcher#2")


def main(target: Path) -> None:
    """Train on the records of a synthetic session, with ids and tools of several kinds."""
    chance = random.Random(7)  # noqa: S311 - the same samples in every run
    rows = [
        [msgspec.json.decode(one.record.data) for one in encode_events("train", events, after=0)]
        for events, _ in synthetic_appends(_ROUNDS)
    ]
    samples = [msgspec.json.encode([_varied(event, chance) for event in row]) for row in rows]
    trained = zstandard.train_dictionary(_BYTES, samples)
    target.write_bytes(trained.as_bytes())
    compressor = zstandard.ZstdCompressor(dict_data=trained, write_dict_id=False)
    ratio = sum(len(compressor.compress(one)) for one in samples) / sum(map(len, samples))
    print(f"{target}: {len(trained)} bytes; its own samples shrink to {ratio:.2f}")


def _varied(event: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The same event with the ids, names and numbers that other agents would have."""
    if "path" in event:
        event["path"] = chance.choice(_PATHS)
    event["at"] = round(event["at"] + chance.random() * 1e8, chance.choice((0, 3, 6)))
    if event["type"] == "message_seen" and chance.random() < 0.5:
        native_id = f"{chance.choice(('lc_run--', 'msg_', ''))}{_token(chance)}"
        place = list(event).index("origin") + 1
        fields = list(event.items())
        event = dict([*fields[:place], ("native_id", native_id), *fields[place:]])
    if event.get("provider_id"):
        event["provider_id"] = f"msg_01{_token(chance)}"
    if "call_id" in event:
        event["call_id"], event["name"] = f"toolu_01{_token(chance)}", chance.choice(_TOOLS)
    for part in event.get("parts", ()):
        if part["type"] == "tool_call":
            words = chance.sample(_ARGUMENTS, 2)
            part["id"], part["name"] = f"toolu_01{_token(chance)}", chance.choice(_TOOLS)
            part["arguments"] = msgspec.json.encode(
                {words[0]: json_path(chance), words[1]: json_path(chance)}
            ).decode()
    return event


def json_path(chance: random.Random) -> str:
    """Something like a path."""
    return "/" + "/".join(chance.sample(("src", "tests", "app", "docs", "lib", "index.ts"), 3))


def _token(chance: random.Random) -> str:
    return "".join(chance.choices(_ID, k=22))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
