"""The viewer: follows a chat and shows it, on a terminal of its own or inside a composer."""
