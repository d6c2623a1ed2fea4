"""What a hostile command does in `test_hostile` that no program of the system does: attack.py TRICK [ARGUMENT ...]

Prints WORKED when the trick did. The directory `lib` beside it holds a copy of cass.
"""

import ctypes
import json
import os
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("lib")))
trick, *arguments = sys.argv[1:]

if trick == "cass":
    from cass.cli import main

    sys.argv[1:] = arguments[1:]
    main(arguments[0])
elif trick == "socket":
    from cass import decisions, standing
    from cass.home import Home

    files = Home.find().files(arguments[0])
    request = next(iter(standing.look(files).pending))
    asked = {"do": "approve", "request_id": request.request_id, "digest": decisions.digest(request)}
    print("WORKED" if decisions.ask(files, asked)["ok"] else "refused")
elif trick == "connect":
    kind, address = arguments
    where = ("127.0.0.1", int(address)) if kind == "inet" else address.replace("@", "\0", 1)
    family = socket.AF_INET if kind == "inet" else socket.AF_UNIX
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(2)
        connection.connect(where)
        print("WORKED")
elif trick == "ptrace":
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(16, int(arguments[0]), None, None) == 0:  # PTRACE_ATTACH
        os.waitpid(int(arguments[0]), 0x40000000)  # __WALL
        libc.ptrace(17, int(arguments[0]), None, None)  # PTRACE_DETACH
        print("WORKED")
elif trick == "inbox":
    box, text = Path(arguments[0]), arguments[1]
    (box / ".new").write_text(json.dumps({"type": "message", "content": text}))
    (box / ".new").rename(box / "0000-inbox")
