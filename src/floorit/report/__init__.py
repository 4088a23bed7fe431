"""The report: one value, and what draws it."""
