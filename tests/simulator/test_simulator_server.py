import socket
import subprocess
import sys
import threading
from http.client import HTTPConnection

import anthropic
import pytest
from wire_prompts import MODEL, text, user

from barograph.simulator import Reply, Simulator


def ask(simulator):
    with anthropic.Anthropic(base_url=simulator.url, api_key="any") as client:
        return client.messages.create(model=MODEL, max_tokens=9, messages=[user(text("a"))])


def test_a_stock_client_talks_to_it_by_its_base_url_alone():
    with Simulator([Reply(content="Hello.")]) as simulator:
        assert ask(simulator).content[0].text == "Hello."
    assert simulator.exchanges[0].status == 200
    assert simulator.exchanges[0].headers["anthropic-version"] == "2026-10-21"


def test_it_has_no_address_unless_it_runs():
    with pytest.raises(RuntimeError, match="not running"):
        _ = Simulator().url


def test_it_leaves_no_thread_and_no_port_behind_and_can_start_again():
    simulator = Simulator([Reply(content="one"), Reply(content="two")])
    before = threading.active_count()
    with simulator:
        port = int(simulator.url.rpartition(":")[2])
        assert ask(simulator).content[0].text == "one"
    assert threading.active_count() == before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)
    with simulator:
        assert ask(simulator).content[0].text == "two"


def test_it_starts_once():
    with Simulator() as simulator, pytest.raises(RuntimeError, match="already"):
        simulator.start()


def test_a_taken_port_is_an_error():
    with Simulator() as simulator:
        port = int(simulator.url.rpartition(":")[2])
        with pytest.raises(OSError, match="use"):
            Simulator(port=port).start()


def test_connections_are_kept_alive():
    with Simulator([Reply(content="a")] * 2) as simulator:
        connection = HTTPConnection(simulator.url.removeprefix("http://"))
        for _ in range(2):
            connection.request("POST", "/v1/messages", b"{}")
            response = connection.getresponse()
            assert response.status == 400
            assert (
                response.getheader("request-id") == "req_sim_" + f"{len(simulator.exchanges):06d}"
            )
            response.read()
            assert connection.sock is not None
        connection.close()


def run(code):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )


def test_the_cache_rules_import_without_the_servers_libraries():
    done = run(
        "import sys, barograph.simulator.cache, barograph.simulator as s; s.SimulatedProvider;"
        "assert not {'starlette', 'uvicorn', 'anthropic'} & set(sys.modules)"
    )
    assert done.returncode == 0, done.stderr


def test_a_missing_extra_is_an_import_error_that_says_what_to_install():
    done = run(
        "import sys; sys.modules['uvicorn'] = None\nfrom barograph.simulator import Simulator"
    )
    assert "ImportError" in done.stderr
    assert "pip install 'barograph[simulator]'" in done.stderr


def test_every_public_name_loads_and_an_unknown_one_does_not():
    import barograph.simulator as package

    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = package.nothing
