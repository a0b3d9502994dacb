"""The parts of uvicorn that are named as text in its settings, and none of the others."""

hiddenimports = [
    "uvicorn.lifespan.off",
    "uvicorn.lifespan.on",
    "uvicorn.loops.asyncio",
    "uvicorn.protocols.http.h11_impl",
]
