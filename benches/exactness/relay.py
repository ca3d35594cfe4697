"""A relay to the database at PORT, through which an answer takes at least 5 ms: `python relay.py PORT`.

Prints its own port, and at the end of its input the number of calls. It parses nothing, to be faster than the database.
"""

import asyncio
import sys

ANSWER_S = 0.005
n_calls = 0


async def connection(reader, writer):
    """A client has one call at a time on a connection."""
    loop, asked = asyncio.get_running_loop(), 0.0
    answers, database = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))

    async def requests():
        nonlocal asked
        while data := await reader.read(1 << 16):
            asked = loop.time()
            database.write(data)
        database.close()

    task = asyncio.create_task(requests())
    while data := await answers.read(1 << 16):
        global n_calls
        n_calls += data.startswith(b"HTTP/")
        await asyncio.sleep(asked + ANSWER_S - loop.time())
        writer.write(data)
    writer.close()
    await task


async def main():
    server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(n_calls, flush=True)


asyncio.run(main())
