"""Choose everything: home, workspace, mode, model and server; then come back to the chat later.

python options.py URL: the address of an OpenAI-compatible server; its key is in MY_PROVIDER_KEY.
"""

import asyncio
import sys
from pathlib import Path

from cass import Mode, Session
from cass.records import Assistant


async def ask(session: Session, text: str) -> str:
    """The last thing that the model says."""
    said = ""
    async with session.turn(text) as turn:
        async for record in turn:
            if isinstance(record, Assistant):
                said = record.content
    return said


async def main(url: str) -> None:
    home = Path("my-cass-root").absolute()
    async with await Session.new(
        home=home,
        cwd=".",
        mode=Mode.WORKSPACE_EDIT,
        model="my-model",
        base_url=url,
        api_key_env="MY_PROVIDER_KEY",
    ) as session:
        print(await ask(session, "What is this project?"))
        id = session.id

    # The chat knows its workspace, model and server; no file names a key that goes there.
    async with await Session.resume(id, home=home, api_key_env="MY_PROVIDER_KEY") as session:
        print(await ask(session, "And who wrote it?"))


asyncio.run(main(sys.argv[1]))
