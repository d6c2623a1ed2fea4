source (status dirname)/cass.fish
