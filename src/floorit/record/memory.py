"""How much memory is free on this machine, for what we keep of the program's data."""

CGROUP = "/sys/fs/cgroup"


def free_memory():
    """Bytes that may still be used, by the machine's own count and the cgroup's."""
    with open("/proc/meminfo") as lines:
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    try:
        with open(f"{CGROUP}/memory.max") as limit, open(f"{CGROUP}/memory.current") as used:
            room = int(limit.read()) - int(used.read())
        with open(f"{CGROUP}/memory.stat") as lines:  # of what is used, files that were read go when room is needed
            free = min(free, room + sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file ")))
    except (OSError, ValueError):
        pass  # no limit
    return max(free, 0)
