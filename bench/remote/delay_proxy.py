"""A proxy in this process that delays each direction of a connection, and counts HTTP requests.

A request's depth is one more than the largest depth of those that were answered before it began: the largest one of
an operation is the number of requests that it made in sequence.
"""

import asyncio
import threading
import time

METHODS = (b"GET ", b"PUT ", b"POST ", b"HEAD ", b"DELETE ")


class DelayProxy:
    def __init__(self, target_port, delay_s):
        self.target_port, self.delay_s = target_port, delay_s
        self.port = None
        self.reset()
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        started.wait()

    def reset(self):
        self.requests = self.depth = self._answered_depth = 0
        self.bytes_up = self.bytes_down = 0

    def close(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self, started):
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._accept, "127.0.0.1", 0, limit=1 << 20))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()

    async def _accept(self, reader, writer):
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.target_port, limit=1 << 20)
        except OSError:
            writer.close()
            return
        state = {"depth": 0}

        def on_request(chunk):
            self.bytes_up += len(chunk)
            if chunk.startswith(METHODS):
                self.requests += 1
                state["depth"] = self._answered_depth + 1
                self.depth = max(self.depth, state["depth"])

        def on_answer(chunk):
            self.bytes_down += len(chunk)
            self._answered_depth = max(self._answered_depth, state["depth"])

        await asyncio.gather(self._pass(reader, server_writer, on_request), self._pass(server_reader, writer, on_answer))

    async def _pass(self, reader, writer, seen):
        """Each chunk is written `delay_s` after it was read; reading goes on meanwhile."""
        queue = asyncio.Queue(256)

        async def write_all():
            while (item := await queue.get()) is not None:
                due, chunk = item
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                writer.write(chunk)
                await writer.drain()

        writing = asyncio.ensure_future(write_all())
        try:
            while chunk := await reader.read(1 << 18):
                seen(chunk)
                await queue.put((time.monotonic() + self.delay_s, chunk))
        except OSError:
            pass
        await queue.put(None)
        try:
            await writing
        except OSError:
            pass
        writer.close()
