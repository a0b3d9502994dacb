"""Serves a small real model over HTTP with llama.cpp until stdin is closed; prints the address once it answers.

    python llama_server.py FOLDER [embeddings]

FOLDER holds the package xllamacpp and the model, as dev.py puts them together. With `embeddings` the model gives
vectors instead of answers.
"""

import importlib
import socket
import sys
from pathlib import Path


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    """Serve."""
    folder = Path(sys.argv[1])
    sys.path.insert(0, str(folder))
    xllamacpp = importlib.import_module("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(folder.glob("*.gguf")))
    parameters.n_ctx = 2048
    # More threads than there are idle processors make it many times slower.
    parameters.cpuparams.n_threads = 1
    parameters.n_parallel = 1
    if "embeddings" in sys.argv[2:]:
        parameters.embedding = True
        parameters.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    parameters.port = free_port()
    server = xllamacpp.Server(parameters)
    print(f"http://127.0.0.1:{parameters.port}/v1", flush=True)  # noqa: T201
    sys.stdin.read()
    del server


if __name__ == "__main__":
    main()
