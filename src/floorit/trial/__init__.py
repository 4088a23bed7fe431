"""Interleaved runs of a program with and without a change, and what may be said of them."""
