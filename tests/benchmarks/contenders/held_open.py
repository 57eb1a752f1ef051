"""Mangum in front of an MCP server, its session manager held open.

With Mangum's own lifespan the SDK's session manager can be run once, so that the first invocation answers and every
later one fails. It works if the manager is entered once, in a task on the loop that Mangum uses for every event.
"""

import asyncio


def mangum(app, manager):
    from mangum import Mangum

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_entered(loop, manager))
    return Mangum(app, lifespan="off")


async def _entered(loop, manager):
    ready = asyncio.Event()

    async def held():
        async with manager:
            ready.set()
            await asyncio.Event().wait()

    loop.held = loop.create_task(held())
    await ready.wait()


def bare(app, manager):
    """Call an ASGI application without an adapter: what is left of the SDK when Mangum costs nothing."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_entered(loop, manager))

    def handler(event, _context):
        return loop.run_until_complete(_asked(app, event))

    return handler


async def _asked(app, event):
    told, path = {"body": b""}, event["rawPath"]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": event["requestContext"]["http"]["method"],
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "https",
        "headers": [(name.encode(), value.encode()) for name, value in event["headers"].items()],
    }
    body = {"type": "http.request", "body": event["body"].encode(), "more_body": False}

    async def receive():
        return body

    async def send(message):
        if message["type"] == "http.response.start":
            told["status"] = message["status"]
        else:
            told["body"] += message.get("body", b"")

    await app(scope, receive, send)
    return {"statusCode": told["status"], "headers": {}, "body": told["body"].decode()}
