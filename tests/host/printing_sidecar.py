"""A sidecar in which a careless library prints to stdout, in every way that there is."""

import os
import subprocess
import sys
from typing import Any

import sidecar.app as product
from sidecar.cli import main


def _print() -> None:
    print("noise from Python", flush=True)  # noqa: T201 - the point of this program
    os.write(1, b"noise from C\n")
    subprocess.run(["echo", "noise from a child"], check=True)


if __name__ == "__main__":
    build_asgi = product.build_asgi

    def noisy(*arguments: Any) -> Any:
        _print()
        app = build_asgi(*arguments)

        async def call(scope: Any, receive: Any, send: Any) -> None:
            _print()
            await app(scope, receive, send)

        return call

    product.build_asgi = noisy  # type: ignore[assignment]
    sys.exit(main())
