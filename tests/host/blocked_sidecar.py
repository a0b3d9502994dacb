"""A sidecar whose event loop can be blocked for good by a request."""

import logging
import sys
import threading
from typing import Any

import sidecar.app as product
from sidecar.cli import main

if __name__ == "__main__":
    build_api = product.build_api

    def with_block(*arguments: Any) -> Any:
        api = build_api(*arguments)

        @api.get("/api/trial/block")
        async def block() -> None:
            logging.getLogger("trial").warning("trial.blocked")
            threading.Event().wait()

        return api

    product.build_api = with_block  # type: ignore[assignment]
    sys.exit(main())
