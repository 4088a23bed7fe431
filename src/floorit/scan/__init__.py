"""Read a project without running it, and name what slows training."""
