"""From a slow program to a proven faster one: what to try next, and what is kept."""
