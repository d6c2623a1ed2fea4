"""llmock's server on loopback: judge.py PACKAGES prints its URL and serves until its input ends.

Run by its own interpreter without the environment of the tests: PACKAGES is the directory that holds llmock.
"""

import sys


def main(packages: str) -> None:
    sys.path.insert(0, packages)
    from llmock.testing import LLMockServer

    with LLMockServer() as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
