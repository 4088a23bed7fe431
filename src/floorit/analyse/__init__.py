"""From what was recorded to what it means: values in, values out."""
