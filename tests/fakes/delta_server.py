"""Streams Chat Completions deltas as fast as they are taken, or at a pace; a process of its own, for benchmarks.

    python -m tests.fakes.delta_server

prints its address. The model's name says what is wanted: `fast-20000` for so many deltas at once, `paced-200-50` for 200
deltas at 50 a second.
"""

import asyncio
import json
import sys

END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
AT_ONCE = 50


def _frame(value: object) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.partition(b":")[2])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            )
            model = json.loads(await reader.readexactly(length))["model"]
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            kind, count, *rate = model.split("-")
            await _stream(writer, int(count), 1 / int(rate[0]) if kind == "paced" else 0.0)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _stream(writer: asyncio.StreamWriter, count: int, pause: float) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(count):
        delta = {"choices": [{"index": 0, "delta": {"content": f"第{number}个词 "}}]}
        frame = _frame(delta)
        writer.write(f"{len(frame):x}\r\n".encode() + frame + b"\r\n")
        if pause:
            await asyncio.sleep(max(0.0, began + (number + 1) * pause - loop.time()))
        elif number % AT_ONCE == 0:
            await writer.drain()
    last = _frame(END) + b"data: [DONE]\n\n"
    writer.write(f"{len(last):x}\r\n".encode() + last + b"\r\n0\r\n\r\n")
    await writer.drain()


async def main() -> None:
    """Serve until stdin is closed."""
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
