"""A real MCP server for tests: `tool_server.py SEED [PORT]`, over stdio or streamable HTTP.

Tools come from the JSON file that TOOLS names, read anew for each listing: a test changes what the
server has by writing it. Each listing has another order of tools and of keys. A tool of the name
`die` ends the process, `fail` refuses, `crash` raises, `sleep` takes long, `write` gives as many
characters as it is asked for, `sing` gives sound, `grow` says that the list of tools has changed,
`echo` says what it was given, `give` gives the blocks that it was given.
"""

import asyncio
import json
import os
import random
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.types import AudioContent, CallToolResult, TextContent, Tool

server = Server("test")
chance = random.Random(sys.argv[1])


def given():
    return json.loads(Path(os.environ["TOOLS"]).read_text(encoding="utf-8"))


def shuffled(value):
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: shuffled(value[key]) for key in keys}
    return value


@server.list_tools()
async def listed():
    tools = [
        Tool(
            name=one["name"],
            description=one.get("description", f"Does {one['name']}."),
            inputSchema=shuffled(
                one.get("schema")
                if "schema" in one
                else {
                    "type": "object",
                    "properties": {
                        "what": {"type": "string", "description": "What to do it to."},
                        "how": {"type": "object", "properties": {"b": {}, "a": {}}},
                    },
                    "additionalProperties": False,
                }
            ),
        )
        for one in given()
    ]
    chance.shuffle(tools)
    return tools


@server.call_tool(validate_input=False)
async def called(name, arguments):
    what = arguments.get("what", "")
    match name:
        case "echo":
            return [TextContent(type="text", text=json.dumps(arguments, sort_keys=True))]
        case "die":
            os._exit(1)
        case "crash":
            raise RuntimeError(f"no {what}")
        case "sleep":
            await asyncio.sleep(60)
        case "write":
            return [TextContent(type="text", text="x" * int(what))]
        case "give":
            return CallToolResult.model_validate({"content": json.loads(what)}).content
        case "sing":
            return [AudioContent(type="audio", data="AAAA", mimeType="audio/wav")]
        case "grow":
            await server.request_context.session.send_tool_list_changed()
    if name not in [one["name"] for one in given()]:
        raise ValueError(f"Unknown tool: {name}")
    return [TextContent(type="text", text=f"{name} {what} by {os.environ['SERVER']}")]


def options():
    return server.create_initialization_options(NotificationOptions(tools_changed=True))


async def over_stdio():
    async with stdio_server() as (read, write):
        await server.run(read, write, options())


def over_http(port):
    import uvicorn
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.routing import Mount

    manager = StreamableHTTPSessionManager(app=server)

    @asynccontextmanager
    async def lifespan(_app):
        async with manager.run():
            yield

    app = Starlette(routes=[Mount("/mcp", app=manager.handle_request)], lifespan=lifespan)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        over_http(int(sys.argv[2]))
    else:
        asyncio.run(over_stdio())
