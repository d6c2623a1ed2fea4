"""Chats for a completion: their ids and what they are about, found by a shell alone, without the start of a Python.

Those of agents are left out, as from every list to pick from.
"""

MOST = 200
"""The chats that were used last."""
WIDTH = 70
"""Characters of what is said of one."""

# Each file is read up to its first user message, as `records.encode` writes it or Cassady 0.4 did. A name that is none
# of ours, and whatever a terminal could obey, is left out.
SCRIPT = r"""cd "${CASS_HOME:-$HOME/.cass}/conversations" 2>/dev/null && ls -t | awk '
/^[A-Za-z0-9_][A-Za-z0-9_-]*\.jsonl$/ {
    said = agent = ""
    for (n = 0; n < 20 && (getline line < $0) > 0; n++) {
        if (n == 0 && (agent = line ~ /^[{]"type":"meta".*,"agent_of":"/)) break
        if (match(line, /^[{]"type":"(message","role":"user","id":"[^"]*|user)","content":"/)) {
            said = substr(line, RLENGTH + 1, 400)
            match(said, /^([^"\\]|\\.)*/)
            said = substr(said, 1, RLENGTH)
            gsub(/\\[bfnrt]/, " ", said)
            gsub(/\\u[0-9a-f][0-9a-f][0-9a-f][0-9a-f]/, "", said)
            gsub(/\\/, "", said)
            break
        }
    }
    close($0)
    if (agent) next
    if (++count > MOST) exit
    sub(/\.jsonl$/, "")
    print $0 " " said
}' | sed "s/[^[:print:]]//g; s/^\(.\{WIDTH\}\).*/\1/; s/ *$//"
""".replace("MOST", str(MOST)).replace("WIDTH", str(WIDTH + 23))
"""For `sh`: prints ``ID WORDS`` for each chat, the last used first."""
