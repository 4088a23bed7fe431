"""`floorit watch`: a live view of a run, which only reads its files."""
