def scaled(x):
    return x * 2


def train(model, loader, optimizer):
    total = 0
    for x in loader:
        loss = model(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
