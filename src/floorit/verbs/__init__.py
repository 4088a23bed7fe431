"""What the verbs of the command line do, but for those of a package of their own."""
