def share(out):
    return (out > 0).float().mean().item()  # finds: item
