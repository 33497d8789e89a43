"""Tools of real MCP servers, over stdio and HTTP: the same bytes, and one change where one came."""

import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest
from langchain.agents import create_agent
from langchain_anthropic import convert_to_anthropic_tool
from mcp.types import ListToolsResult
from stage import ask, calling, config, exchanges_of, logged, model_at, prove

from barograph.audit.explain import list_calls
from barograph.core.errors import ServerUnreachable, UsageError
from barograph.core.events import HeaderSet, Nudged, ToolEnded
from barograph.core.policy import Policy
from barograph.langchain import Barograph, mcp_link
from barograph.langchain.mcp import McpServers
from barograph.simulator import Reply

SCRIPT = Path(__file__).with_name("tool_server.py")
RECALLED = ["history_read", "history_search", "read_original"]
SYSTEM = "Work with care and say what you did. " * 220


class Servers:
    """What servers there are, and what each of them has."""

    def __init__(self, folder):
        self.folder = folder

    def has(self, server, *tools):
        file = self.folder / f"{server}.json"
        file.write_text(
            json.dumps([one if isinstance(one, dict) else {"name": one} for one in tools]),
            encoding="utf-8",
        )

    def environment(self, server):
        return {"TOOLS": str(self.folder / f"{server}.json"), "SERVER": server}

    def stdio(self, *names):
        """Connections in some order, to servers that list and spell in some order."""
        names = list(names)
        random.shuffle(names)
        return {
            name: {
                "command": sys.executable,
                "args": [str(SCRIPT), str(random.random())],
                "env": self.environment(name),
            }
            for name in names
        }


@pytest.fixture
def servers(tmp_path):
    return Servers(tmp_path)


def agent_with(simulator, session, servers, *middleware):
    model = model_at(simulator.url, session)
    return create_agent(model, system_prompt=SYSTEM, middleware=[servers, *middleware])


def results(state):
    return {m.tool_call_id: (m.status, m.text) for m in state["messages"] if m.type == "tool"}


def tools_of(exchanges):
    return [[one["name"] for one in json.loads(each.request)["tools"]] for each in exchanges]


def tool_bytes(exchange):
    return json.dumps(json.loads(exchange.request)["tools"])


def widenings(store, session):
    headers = [event for event in logged(store, session) if isinstance(event, HeaderSet)]
    return [header.changed for header in headers[1:]]


def causes(store, session):
    return [row.cause for row in list_calls(store, session)]


def test_two_servers_a_reconnect_and_a_new_tool_are_one_invalidation(
    simulator, session, store, servers
):
    servers.has("files", "look", "die", "zip")
    servers.has("shop", "buy", "look")
    simulator.play(
        session,
        [
            calling(("c1", "shop_look", {"what": "it"}), ("c2", "die", {})),
            calling(("c3", "files_look", {"what": "again"})),
            calling(("c4", "copy", {"what": "it"})),
            Reply(content="done"),
            Reply(content="hello again"),
        ],
    )
    with McpServers(servers.stdio("files", "shop")) as open_servers:
        agent = agent_with(simulator, session, open_servers, Barograph(store))
        servers.has("files", "copy", "look", "die", "zip")  # as it will be when it is back
        state = agent.invoke(ask("go"), config(session))
    with McpServers(servers.stdio("files", "shop")) as open_servers:
        agent = agent_with(simulator, session, open_servers, Barograph(store))
        more = {"messages": [*state["messages"], *ask("more")["messages"]]}
        agent.invoke(more, config(session))

    said = results(state)
    assert said["c1"] == ("success", "look it by shop")
    assert said["c2"][0] == "error"
    assert "Whether the tool ran is not known" in said["c2"][1]
    assert said["c3"] == ("success", "look again by files")
    assert said["c4"] == ("success", "copy it by files")

    exchanges = exchanges_of(simulator, session)
    first = tools_of(exchanges)[0]
    assert first == ["buy", "die", "files_look", *RECALLED, "shop_look", "zip"]
    assert tools_of(exchanges) == [first] * 2 + [[*first, "copy"]] * 3
    assert len({tool_bytes(each) for each in exchanges}) == 2
    assert widenings(store, session) == [("tools",)]
    assert causes(store, session).count("tools_changed") == 1
    prove(store, session, exchanges, breaks=1)

    (told,) = [event for event in logged(store, session) if isinstance(event, Nudged)]
    assert told.causes == ("tools",)
    assert told.tools == ("copy",)
    assert told.text in exchanges[2].request.decode()


def test_a_tool_comes_when_its_server_says_so_and_stays_when_it_is_gone(
    simulator, session, store, servers, loop
):
    servers.has("files", "grow", "look")
    simulator.play(
        session,
        [
            calling(("c1", "grow", {})),
            calling(("c2", "look", {}), ("c3", "new", {})),
            Reply(content="done"),
        ],
    )

    async def talk():
        async with McpServers(servers.stdio("files")) as open_servers:
            agent = agent_with(simulator, session, open_servers, Barograph(store))
            servers.has("files", "grow", "new")
            return await agent.ainvoke(ask("go"), config(session))

    said = results(loop.run(talk()))
    assert said["c2"] == ("error", "Unknown tool: look")
    assert said["c3"] == ("success", "new  by files")
    exchanges = exchanges_of(simulator, session)
    assert [names[-1] for names in tools_of(exchanges)] == ["read_original", "new", "new"]
    assert all("look" in names for names in tools_of(exchanges))
    assert widenings(store, session) == [("tools",)]
    prove(store, session, exchanges, breaks=1)


def test_what_goes_wrong_at_a_server_is_a_bounded_result(simulator, session, store, servers):
    servers.has("files", "crash", "sleep", "sing", "write", "short")
    policy = Policy(
        mcp_max_result_chars=2_000,
        server_result_chars={"files": 1_000},
        tool_result_chars={"sing": 0},
    )
    simulator.play(
        session,
        [
            calling(
                ("c1", "crash", {"what": "y" * 3_000}),
                ("c2", "sleep", {}),
                ("c3", "sing", {}),
                ("c4", "write", {"what": "5000"}),
            ),
            Reply(content="done"),
        ],
    )
    with McpServers(servers.stdio("files"), call_seconds=0.3) as open_servers:
        ours = Barograph(store, policy=policy)
        agent = agent_with(simulator, session, open_servers, ours)
        state = agent.invoke(ask("go"), config(session))

    said = results(state)
    assert said["c2"][0] == "error"
    assert "Timed out" in said["c2"][1]
    assert said["c3"] == ("success", "[Left out: audio/wav, 4 characters of base64.]")
    shown = {
        block["tool_use_id"]: block
        for block in json.loads(exchanges_of(simulator, session)[1].request)["messages"][-1][
            "content"
        ]
    }
    for call, is_error in (("c1", True), ("c4", False)):
        assert len(said[call][1]) > 1_000
        assert 900 < len("".join(part["text"] for part in shown[call]["content"])) <= 1_000
        assert bool(shown[call].get("is_error")) is is_error
    ended = [event for event in logged(store, session) if isinstance(event, ToolEnded)]
    assert {event.server for event in ended} == {"files"}


def test_an_argument_may_have_any_name(servers, loop):
    servers.has("files", "echo")
    names = ("callbacks", "config", "given", "name", "run_manager", "runtime", "self")
    given = dict.fromkeys(names, "it")
    call = {"type": "tool_call", "id": "c1", "name": "echo", "args": given}

    async def talk(tool):
        return await tool.ainvoke(call)

    with McpServers(servers.stdio("files")) as open_servers:
        (echo,) = open_servers.tools
        for message in (echo.invoke(call), loop.run(talk(echo))):
            assert json.loads(message.text) == given


def test_a_schema_says_that_it_is_of_an_object(servers):
    servers.has("files", {"name": "bare", "schema": {}})
    with McpServers(servers.stdio("files")) as open_servers:
        (bare,) = open_servers.tools
    assert convert_to_anthropic_tool(bare)["input_schema"] == {"type": "object"}


def resource(blob, **more):
    return {"type": "resource", "resource": {"uri": "file:///a", "blob": blob, **more}}


def image(data, kind):
    return {"type": "image", "data": data, "mimeType": kind}


@pytest.mark.parametrize(
    ("block", "said"),
    [
        pytest.param(resource("UEsDBA=="), "unknown kind, 8 characters of base64", id="no-kind"),
        pytest.param(
            resource("UEsDBA==", mimeType="application/zip"),
            "application/zip, 8 characters of base64",
            id="file",
        ),
        pytest.param(image("AAAA", "image/bmp"), "image/bmp, 4 characters of base64", id="bmp"),
        pytest.param(image("!", "image/png"), "image/png, 1 characters of base64", id="no-base64"),
        pytest.param(
            {"type": "resource_link", "name": "x", "uri": "file:///x.png", "mimeType": "image/png"},
            "image/png at file:///x.png",
            id="link",
        ),
    ],
)
def test_a_note_stands_for_what_a_provider_refuses(servers, block, said):
    servers.has("files", "give")
    call = {"type": "tool_call", "id": "c1", "name": "give"}
    with McpServers(servers.stdio("files")) as open_servers:
        (give,) = open_servers.tools
        message = give.invoke({**call, "args": {"what": json.dumps([block])}})
    assert message.text == f"[Left out: {said}.]"


def test_pictures_and_documents_are_shown(servers):
    servers.has("files", "give")
    blocks = [image("AAAA", "image/png"), resource("AAAA", mimeType="application/pdf")]
    call = {"type": "tool_call", "id": "c1", "name": "give"}
    with McpServers(servers.stdio("files")) as open_servers:
        (give,) = open_servers.tools
        message = give.invoke({**call, "args": {"what": json.dumps(blocks)}})
    assert [block["type"] for block in message.content] == ["image", "file"]


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def serve(servers, name, port):
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(random.random()), str(port)],
        env={**os.environ, **servers.environment(name)},
    )
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        time.sleep(0.05)
    raise AssertionError(port)


def stop(process):
    process.kill()
    process.wait()


def test_a_server_over_http_is_found_again_after_it_was_restarted(
    simulator, session, store, servers, loop
):
    servers.has("web", "look", "zip")
    port = free_port()
    process = serve(servers, "web", port)
    simulator.play(
        session,
        [
            calling(("c1", "look", {"what": "one"})),
            Reply(content="one"),
            calling(("c2", "look", {"what": "two"})),
            Reply(content="down"),
            calling(("c3", "look", {"what": "three"})),
            Reply(content="three"),
        ],
    )

    async def talk(process):
        connection = {"web": {"url": f"http://127.0.0.1:{port}/mcp/"}}
        async with McpServers(connection) as open_servers:
            agent = agent_with(simulator, session, open_servers, Barograph(store))
            state = await agent.ainvoke(ask("one"), config(session))
            await asyncio.to_thread(stop, process)
            state = await agent.ainvoke(
                {"messages": [*state["messages"], *ask("two")["messages"]]}, config(session)
            )
            process = await asyncio.to_thread(serve, servers, "web", port)
            try:
                return await agent.ainvoke(
                    {"messages": [*state["messages"], *ask("three")["messages"]]}, config(session)
                )
            finally:
                await asyncio.to_thread(stop, process)

    said = results(loop.run(talk(process)))
    assert said["c1"] == ("success", "look one by web")
    assert said["c2"][0] == "error"
    assert "was not asked" in said["c2"][1]
    assert said["c3"] == ("success", "look three by web")
    assert widenings(store, session) == []
    prove(store, session, exchanges_of(simulator, session))


def test_the_same_servers_give_the_same_bytes_in_another_process(servers):
    servers.has("b", "look", "buy", "a.b")
    servers.has("a", "look", "zip", "a_b")
    program = (
        "import json, sys\n"
        "from langchain_anthropic import convert_to_anthropic_tool\n"
        "from barograph.langchain.mcp import McpServers\n"
        "with McpServers(json.loads(sys.argv[1])) as servers:\n"
        "    print(json.dumps([convert_to_anthropic_tool(tool) for tool in servers.tools]))\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", program, json.dumps(servers.stdio("a", "b"))],
        stdout=subprocess.PIPE,
        check=True,
    )
    with McpServers(servers.stdio("a", "b")) as open_servers:
        one = json.dumps([convert_to_anthropic_tool(tool) for tool in open_servers.tools])
    assert process.stdout.decode().strip() == one
    names = [tool["name"] for tool in json.loads(one)]
    assert names == ["a_a_b", "a_look", "zip", "b_a_b", "buy", "b_look"]


class Refusing:
    """A server that answers nothing, and to which the call of `late` cannot connect."""

    def __init__(self):
        self.called = []

    @asynccontextmanager
    async def connect(self, _connection):
        self.is_late = asyncio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.post)
            yield self
            tasks.cancel_scope.cancel()

    async def post(self):
        await self.is_late.wait()
        raise httpx.ConnectError("refused")

    async def initialize(self):
        pass

    async def list_tools(self, **_page):
        return ListToolsResult(tools=[])

    async def call_tool(self, name, _arguments, _time):
        self.called.append(name)
        if name == "late":
            self.is_late.set()
        await asyncio.sleep(60)


@pytest.mark.parametrize("first", [[], ["early"]])
async def test_a_call_that_left_is_not_made_again_where_another_one_cannot(monkeypatch, first):
    server = Refusing()
    monkeypatch.setattr(mcp_link, "create_session", server.connect)
    link = mcp_link.Link("web", {"url": "http://x"}, connect_seconds=5, call_seconds=5)
    calls = [asyncio.ensure_future(link.call(name, {})) for name in [*first, "late"]]
    errors = await asyncio.gather(*calls, return_exceptions=True)
    await link.close()
    if first:
        assert server.called == ["early", "late"]
        assert [type(error) for error in errors] == [mcp_link.Lost] * 2
    else:
        assert server.called == ["late"] * 2
        assert [type(error) for error in errors] == [mcp_link.NotAsked]


def test_a_server_that_is_not_there_at_the_start_is_an_error(servers):
    servers.has("files", "look")
    connections = {**servers.stdio("files"), "gone": {"url": f"http://127.0.0.1:{free_port()}/"}}
    open_servers = McpServers(connections)
    with pytest.raises(ServerUnreachable, match="'gone' cannot be connected to"):
        open_servers.__enter__()
    with pytest.raises(UsageError, match="files, gone are not open"):
        _ = open_servers.tools


def test_a_tool_that_is_called_after_its_servers_were_closed_says_so(servers):
    servers.has("files", "look")
    with McpServers(servers.stdio("files")) as open_servers:
        (look,) = open_servers.tools
    with pytest.raises(UsageError, match="not open"):
        look.invoke({"what": "it"})
