"""A user's own parallel text: files in a folder, one split after the other."""
