"""Llama: llama.cpp's server on loopback, a program of its own: llama.py MODEL.gguf CONTEXT.

It prints its URL and serves until its standard input ends, so that it never outlives whoever started it, however that
one ended. Run without the package's other modules: only it needs the extra ``cassady[local]``.
"""

import ctypes
import os
import signal
import sys
import threading

import xllamacpp

_PR_SET_PDEATHSIG = 1


def main(model: str, context: str) -> None:
    if sys.platform == "linux":  # a model that is being loaded lets no thread of Python run
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    threading.Thread(target=_watch, daemon=True).start()
    given = xllamacpp.CommonParams()
    given.model.path = model
    given.n_ctx = int(context)
    given.n_parallel = 1
    given.port = 0
    given.warmup = False
    server = xllamacpp.Server(given)
    print(server.listening_address, flush=True)
    threading.Event().wait()


def _watch() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
