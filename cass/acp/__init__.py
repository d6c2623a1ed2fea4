"""The Agent Client Protocol: an editor that takes part in chats as a composer does, over standard input and output."""
