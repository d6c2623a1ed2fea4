"""The composer: keys, draft, history, commands and approvals, at one terminal."""
