"""Looking for the best sequence, for what a model looks at, or for a learning rate: not training."""

import torch
from torch import nn

model = nn.Linear(4, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class BeamSearcher(nn.Module):
    def forward(self, scores):
        return [scores[i].argmax().item() for i in range(len(scores))]


class Tagger(nn.Module):
    def forward(self, scores, best=False):
        return self._viterbi(scores) if best else scores.logsumexp(1)

    def _viterbi(self, scores):
        return scores.max().item()


class GradientInterpreter:
    def gradients(self, batches):
        for batch in batches:
            loss = model(batch).mean()
            loss.backward()
            print(loss.item())


def search_learning_rate(batches):
    for batch in batches:
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())


searcher, tagger = BeamSearcher(), Tagger()
for step in range(20):
    loss = tagger(model(torch.randn(8, 4, device="cuda"))).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(searcher(model(torch.randn(8, 4, device="cuda"))), GradientInterpreter().gradients([]), search_learning_rate([]))
