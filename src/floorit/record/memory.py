"""How much memory is free on this machine, for what we keep of the program's data."""


def free_memory():
    """Bytes that may still be used, by the machine's own count and the cgroup's."""
    with open("/proc/meminfo") as lines:
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    try:
        with open("/sys/fs/cgroup/memory.max") as limit, open("/sys/fs/cgroup/memory.current") as used:
            free = min(free, int(limit.read()) - int(used.read()))
    except (OSError, ValueError):
        pass  # no limit
    return max(free, 0)
