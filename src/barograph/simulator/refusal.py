"""How the simulator says no: the provider's error body, raised on the way to it."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

INVALID = "invalid_request_error"
NOT_FOUND = "not_found_error"

_INDEX: Final = re.compile(r"\[(\d+)\]")
_NAMED: Final = re.compile(r"(?:missing required|contains unknown) field `(\w+)`")


class Refused(Exception):
    """The provider answers this request with an error, in-band.

    Args:
        message: what the body says.
        status: HTTP status.
        kind: the `type` of the error.
        headers: headers that the answer has beside the usual ones.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = INVALID,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.message = message
        self.status = status
        self.kind = kind
        self.headers = dict(headers or {})
        super().__init__(message)

    def body(self, request_id: str) -> bytes:
        """The JSON body (reference: provider errors page, error shapes)."""
        error = {"type": self.kind, "message": self.message}
        return msgspec.json.encode({"type": "error", "error": error, "request_id": request_id})


def refusal_of(error: msgspec.DecodeError, *, inside: str = "") -> Refused:
    """The provider's words for what msgspec found: the path first, then the complaint."""
    words = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return Refused(f"The request body is not valid JSON: {words}")
    complaint, _, place = words.partition(" - at `$")
    path = inside + _INDEX.sub(r".\1", place.rstrip("`"))
    name = _NAMED.search(complaint)
    if name is not None:
        path += f".{name[1]}"
        complaint = "Field required" if "missing" in complaint else "Extra inputs are not permitted"
    return Refused(f"{path.strip('.') or 'body'}: {complaint}")
