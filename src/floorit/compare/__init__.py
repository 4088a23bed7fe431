"""`floorit compare`: two records side by side."""
