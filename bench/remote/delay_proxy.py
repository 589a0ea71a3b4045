"""A proxy before an HTTP server that adds a round trip's time, in a separate process, and records requests.

A client's bytes reach the server half of the round trip after their arrival, and a reply likewise. Later bytes wait as
long; the rate is unchanged. A new connection costs a client one round trip more, like TCP's handshake.
"""

import asyncio
import contextlib
import multiprocessing
import queue
import re
import socket
import threading
import time
from dataclasses import dataclass

CHUNK_BYTES = 1 << 20
MAX_AHEAD = 64  # chunks of a connection in transit
# A client waits for the reply to its last request; therefore a request begins a chunk.
REQUEST = re.compile(rb"(GET|PUT|POST|HEAD|DELETE) (\S+) HTTP/1\.1\r\n")
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass
class Request:
    """Bytes are those of the connection, with headers; `body` is the length that the client declares.

    The first request of a connection begins when the connection is accepted.
    """

    what: str
    begun: float
    body: int = 0
    sent: int = 0
    received: int = 0
    ended: float = 0.0


class Connection:
    """Passes its requests to `note`, each when the next one begins or the connection ends."""

    def __init__(self, note):
        self.note, self.open, self.came = note, None, time.monotonic()

    def sends(self, data):
        if match := REQUEST.match(data):
            self.end()
            what = f"{match[1].decode()} {match[2].decode('ascii', 'replace')}"
            length = LENGTH.search(data)
            self.open = Request(what, self.came or time.monotonic(), int(length[1]) if length else 0)
            self.came = None
        if self.open:
            self.open.sent += len(data)

    def receives(self, data):
        if self.open:
            self.open.received += len(data)
            self.open.ended = time.monotonic()

    def end(self):
        if self.open:
            self.note(self.open)
        self.open = None


async def pass_on(reader, writer, delay, look):
    """Passes each chunk on `delay` seconds after its arrival; reading does not wait for that."""
    line = asyncio.Queue(MAX_AHEAD)

    async def write():
        while (item := await line.get()) is not None:
            due, data = item
            await asyncio.sleep(max(0, due - time.monotonic()))
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    async def read():
        while data := await reader.read(CHUNK_BYTES):
            look(data)
            await line.put((time.monotonic() + delay, data))
        await line.put(None)

    # A failure of either ends both: otherwise one would wait for space in the queue.
    async with asyncio.TaskGroup() as both:
        both.create_task(read())
        both.create_task(write())


async def serve(listener, upstream, half, note):
    async def connection(reader, writer):
        seen = Connection(note)
        await asyncio.sleep(2 * half)
        to_server = None
        try:
            from_server, to_server = await asyncio.open_connection(*upstream, limit=CHUNK_BYTES)
            async with asyncio.TaskGroup() as ways:
                ways.create_task(pass_on(reader, to_server, half, seen.sends))
                ways.create_task(pass_on(from_server, writer, half, seen.receives))
        except* OSError:  # one end has closed: so does the other
            pass
        finally:
            seen.end()
            for end in (writer, to_server):
                if end:
                    end.close()

    server = await asyncio.start_server(connection, sock=listener, limit=CHUNK_BYTES)
    async with server:
        await server.serve_forever()


def run(listener, upstream, half, queue):
    asyncio.run(serve(listener, upstream, half, queue.put))


class DelayProxy:
    """A context. `requests()` returns those that ended since the last call; the end of a client ends its requests."""

    def __init__(self, host, port, round_trip_s):
        context = multiprocessing.get_context("fork")
        self.round_trip_s = round_trip_s
        self.queue = context.Queue()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.process = context.Process(target=run, args=(self.listener, (host, port), round_trip_s / 2, self.queue),
                                       daemon=True)

    def requests(self):
        time.sleep(0.1 + 2 * self.round_trip_s)
        found = []
        # empty() may be true while the proxy's process, on a busy machine, still writes.
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self.queue.get(timeout=0.5))
        return found

    def __enter__(self):
        self.process.start()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.join()
        self.listener.close()


def in_sequence(requests):
    """The longest chain of requests, each of which began after its predecessor had ended."""
    count, last = 0, 0.0
    for request in sorted(requests, key=lambda r: r.ended):
        if request.begun >= last:
            count, last = count + 1, request.ended
    return count


def own_rate(round_trip_s, count=256):
    """Bytes a second of one connection through a proxy, from a server that only sends."""
    with socket.create_server(("127.0.0.1", 0)) as source:

        def send():
            connection, _ = source.accept()
            with connection:
                for _ in range(count):
                    connection.sendall(bytes(CHUNK_BYTES))

        thread = threading.Thread(target=send)
        thread.start()
        with DelayProxy(*source.getsockname(), round_trip_s) as proxy, \
                socket.create_connection(("127.0.0.1", proxy.port)) as client:
            start = time.monotonic()
            while client.recv(CHUNK_BYTES):
                pass
            seconds = time.monotonic() - start
        thread.join()
    return count * CHUNK_BYTES / seconds
