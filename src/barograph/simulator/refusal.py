"""How the simulator says no: the provider's error body, raised on the way to it."""

import msgspec

INVALID = "invalid_request_error"
NOT_FOUND = "not_found_error"


class Refused(Exception):
    """The provider answers this request with an error, in-band.

    Args:
        message: what the body says.
        status: HTTP status.
        kind: the `type` of the error.
    """

    def __init__(self, message: str, *, status: int = 400, kind: str = INVALID) -> None:
        self.message = message
        self.status = status
        self.kind = kind
        super().__init__(message)

    def body(self, request_id: str) -> bytes:
        """The JSON body (reference: provider errors page, error shapes)."""
        error = {"type": self.kind, "message": self.message}
        return msgspec.json.encode({"type": "error", "error": error, "request_id": request_id})
