class Older:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def train(self, loader):
        for x in loader:
            loss = self.model(x.cuda()).mean()
            loss.backward()
            self.optimizer.step()
            print(loss.item())
