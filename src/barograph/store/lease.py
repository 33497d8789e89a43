"""Who may write a session now.

A lease names a writer and a time until which nobody else may write. It lies beside the log, not in
it, and is checked and renewed in the transaction of each append, so it costs no round trip. Times
come from the events: a store has no clock.

A lease is free when it was given up, when its time has passed, or when its holder's process is no
longer running on this host, so that a killed process can be continued at once. It is a courtesy:
what keeps a history whole is that an append names the seq it follows.
"""

import os
import socket
from pathlib import Path
from typing import Final
from uuid import uuid4

from msgspec import Struct

from barograph.store.refusals import held_elsewhere

_OWN_STATUS: Final = Path("/proc/self/stat")


class Lease(Struct, frozen=True, kw_only=True):
    """The right to write a session.

    Attributes:
        holder: the writer, as `new_holder` names it.
        until: seconds since the epoch up to which nobody else may write; 0 gives the lease up.
    """

    holder: str
    until: float


def new_holder() -> str:
    """A name for a new writer of this process: host, process, its birth, and a random part."""
    pid = os.getpid()
    return f"{socket.gethostname()}/{pid}/{_birth(pid)}/{uuid4().hex[:8]}"


def check_lease(session: str, held: Lease | None, writer: Lease | None, *, at: float) -> None:
    """Refuse a writer while another one holds the session.

    Raises:
        SequenceConflict: it is held elsewhere.
    """
    if held is None or held.until <= at or (writer and writer.holder == held.holder):
        return
    host, pid, birth = _parse(held.holder)
    if not _is_gone(host, pid, birth):
        raise held_elsewhere(session, host=host, pid=pid, until=held.until)


def _parse(holder: str) -> tuple[str, int, str]:
    host, pid, birth, _ = holder.rsplit("/", 3)
    return host, int(pid), birth


def _is_gone(host: str, pid: int, birth: str) -> bool:
    """Whether that process has ended, as far as this host can tell."""
    return host == socket.gethostname() and _birth(pid) != birth


def _birth(pid: int) -> str:
    """What tells a running process from a later one of the same number; empty where none runs.

    Numbers come again soon: the first process of a restarted container has that of the one before.
    """
    if _OWN_STATUS.exists():
        try:
            status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        # The name may hold anything; behind its bracket come the state and, 19 further, the birth.
        fields = status.rpartition(")")[2].split()
        return "" if fields[0] in {"Z", "X"} else fields[19]
    if os.name == "nt":
        return "?"  # to ask there is to interrupt
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "?"
