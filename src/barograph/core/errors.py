"""Every error Barograph raises.

```
BarographError              .code, the ids involved, the next step in words
├ UsageError                the caller's mistake
│ ├ PolicyError             a knob or a cache marker outside its range
│ ├ SettingsError           a file or an environment variable that cannot be used
│ ├ SecondOwner             another middleware rewrites the same requests
│ ├ UnknownSession
│ ├ UnknownCall
│ ├ UnknownTurn
│ ├ UnknownHandle
│ ├ UnknownDocument
│ └ PinRefused              a message says nothing, or too much would be pinned
├ LogError                  the log itself
│ ├ LogCorrupt              a missing or altered body, an event that does not decode
│ ├ SequenceConflict        two writers, one session
│ └ SchemaTooNew            written by a newer Barograph
├ SurfaceError              a request that cannot be derived
│ └ UnpairedToolCall
├ StoreError
│ ├ StoreUnavailable        cannot be opened, read or written
│ └ StoreBusy               locked by another writer for longer than we wait
├ ArchiveError
│ ├ ArchiveRefused          a fold by hand was not made, and nothing changed
│ └ ArchiveFailed           no searchable copy of what is hidden; the log has it
├ ServerUnreachable         a tool server that cannot be connected to
└ ProviderError             the provider's own error, chained
```

Errors of capabilities that do not exist yet are added with them.
"""


class BarographError(Exception):
    """What happened, to which ids, and what to do next.

    Args:
        what: one sentence that names what happened and to which ids.
        next_step: one sentence that says what the reader can do about it.
        ids: the identifiers involved, for programs (`session`, `call`, `seq`, `path` ...).
    """

    code = "barograph"

    def __init__(self, what: str, *, next_step: str = "", **ids: object) -> None:
        self.what = what
        self.next_step = next_step
        self.ids = ids
        super().__init__(f"{what} {next_step}".strip())


class UsageError(BarographError):
    """The caller asked for something that cannot be done as asked."""

    code = "usage"


class PolicyError(UsageError):
    """A policy knob, or a cache marker, outside its allowed range."""

    code = "policy"


class SettingsError(UsageError):
    """A file or an environment variable that cannot be used."""

    code = "settings"


class SecondOwner(UsageError):
    """Another middleware rewrites the requests that Barograph governs."""

    code = "second_owner"


class UnknownSession(UsageError):
    """No session of that id, or more than one starts with that prefix."""

    code = "unknown_session"


class UnknownCall(UsageError):
    """The session has no call of that number."""

    code = "unknown_call"


class UnknownTurn(UsageError):
    """The agent path has no turn of that number."""

    code = "unknown_turn"


class UnknownHandle(UsageError):
    """The session has no content of that handle."""

    code = "unknown_handle"


class UnknownDocument(UsageError):
    """No document of that id was added, or more than one starts with that prefix."""

    code = "unknown_document"


class PinRefused(UsageError):
    """A message cannot be pinned; nothing changed."""

    code = "pin_refused"


class LogError(BarographError):
    """The log cannot be trusted as it is."""

    code = "log"


class LogCorrupt(LogError):
    """A body is missing or altered, or an event does not decode."""

    code = "log_corrupt"


class SequenceConflict(LogError):
    """Another writer appended to this session first."""

    code = "sequence_conflict"


class SchemaTooNew(LogError):
    """The log was written by a newer version of Barograph."""

    code = "schema_too_new"


class SurfaceError(BarographError):
    """A request cannot be derived from the log."""

    code = "surface"


class UnpairedToolCall(SurfaceError):
    """A derived request holds a tool call without its result, or the reverse."""

    code = "unpaired_tool_call"


class StoreError(BarographError):
    """The place where logs live does not answer."""

    code = "store"


class StoreUnavailable(StoreError):
    """The store cannot be opened, read or written."""

    code = "store_unavailable"


class StoreBusy(StoreError):
    """Another writer holds the store for longer than we wait."""

    code = "store_busy"


class ArchiveError(BarographError):
    """What a compaction hides could not be copied to where it is searched."""

    code = "archive"


class ArchiveRefused(ArchiveError):
    """A fold that somebody asked for was not made; nothing changed. `reason` says why."""

    code = "archive_refused"


class ArchiveFailed(ArchiveError):
    """The searchable copy could not be made; a compaction that must be goes on without it."""

    code = "archive_failed"


class ServerUnreachable(BarographError):
    """A tool server cannot be connected to, or does not say what tools it has."""

    code = "server_unreachable"


class ProviderError(BarographError):
    """The provider refused a call; its own error is the cause."""

    code = "provider"
