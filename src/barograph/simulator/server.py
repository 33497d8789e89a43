"""The simulator on a loopback port, for clients that know nothing of it.

One thread runs the server; requests are answered one after another by the provider's state
machine, which takes milliseconds. Nothing here knows a rule of the provider.
"""

import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from threading import Thread
from time import sleep
from types import TracebackType
from typing import Any, Final, Self

from barograph.core.model import ModelFacts
from barograph.simulator.exchange import Exchange
from barograph.simulator.faults import Fault
from barograph.simulator.provider import SimulatedProvider
from barograph.simulator.script import Script
from barograph.simulator.switches import Switches
from barograph.simulator.tokens import TokenRule
from barograph.simulator.transport import Connections, application_of, protocol_of

try:
    import uvicorn
except ImportError as error:
    raise ImportError(
        "The simulator's server needs starlette and uvicorn: pip install 'barograph[simulator]'"
    ) from error

_START_SECONDS: Final = 10.0
_STOP_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.002


class Simulator:
    """A loopback provider that stock clients use by its base URL alone.

    ```python
    with Simulator([Reply(content="Hello.")]) as simulator:
        client = anthropic.Anthropic(base_url=simulator.url, api_key="any")
    ```

    Args:
        script: script of the session `default`.
        rule: how tokens are counted.
        switches: undocumented behaviour.
        rng: where random misses come from.
        clock: seconds for requests without `x-sim-now`; frozen at 0.0 if None.
        facts: facts of a model by its id; the dated table if None.
        keep_bodies: whether `exchanges` keeps request and response bodies.
        record_dir: a folder for files of every exchange, None for none.
        faults: faults to come; `fault` adds more.
        port: where to listen on 127.0.0.1; 0 for any free port.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        rule: TokenRule | None = None,
        switches: Switches | None = None,
        rng: Random | None = None,
        clock: Callable[[], float] | None = None,
        facts: Callable[[str], ModelFacts] | None = None,
        keep_bodies: bool = True,
        record_dir: Path | None = None,
        faults: Sequence[Fault] = (),
        port: int = 0,
    ) -> None:
        self.provider = SimulatedProvider(
            script,
            rule=rule,
            switches=switches,
            rng=rng,
            clock=clock,
            facts=facts,
            keep_bodies=keep_bodies,
            record_dir=record_dir,
            faults=faults,
        )
        self._port = port
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        """The base URL for clients, without a trailing slash.

        Raises:
            RuntimeError: the simulator is not running.
        """
        if self._socket is None:
            raise RuntimeError("The simulator is not running; use it in a `with` statement.")
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    @property
    def exchanges(self) -> list[Exchange]:
        """Every request received so far, with its answer."""
        return self.provider.exchanges

    @property
    def sessions(self) -> list[str]:
        """Names of the sessions that play."""
        return self.provider.sessions

    def play(self, session: str, script: Script) -> None:
        """Let a session answer by a script; see `SimulatedProvider.play`."""
        self.provider.play(session, script)

    def fault(self, kind: str, **fields: Any) -> None:
        """Let requests fail; see `SimulatedProvider.fault`.

        ```python
        simulator.fault("overloaded", times=2)  # the next two requests
        simulator.fault("cut", session="default", index=3, after_events=5)
        ```
        """
        self.provider.fault(kind, **fields)

    def start(self) -> Self:
        """Listen, and return once requests are answered.

        Raises:
            OSError: the port is taken.
            RuntimeError: it runs already, or does not come up.
        """
        if self._socket is not None:
            raise RuntimeError("The simulator is running already.")
        self._socket = _listening(self._port)
        connections: Connections = {}
        config = uvicorn.Config(
            application_of(self.provider, connections, self._is_stopping),
            loop="asyncio",
            http=protocol_of(connections),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        thread = Thread(
            target=server.run, kwargs={"sockets": [self._socket]}, name="simulator", daemon=True
        )
        self._server, self._thread = server, thread
        thread.start()
        waited_seconds = 0.0
        while not server.started:
            sleep(_POLL_SECONDS)
            waited_seconds += _POLL_SECONDS
            if waited_seconds > _START_SECONDS or not thread.is_alive():
                self.stop()
                raise RuntimeError("The simulator's server did not come up.")
        return self

    def stop(self) -> None:
        """Stop listening and end the thread; what was exchanged stays readable."""
        if self._server is not None:
            self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)
        if self._socket is not None:
            self._socket.close()
        self._server = self._thread = self._socket = None

    def _is_stopping(self) -> bool:
        return self._server is None or self._server.should_exit

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _listening(port: int) -> socket.socket:
    # The protocol is named because the event loop sets TCP_NODELAY only on sockets that name it,
    # and without it every answer waits 40 ms for an acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener
