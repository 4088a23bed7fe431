"""A plain loop that knows of no tool: trains, evaluates now and then, and says at last how fast it was."""

import argparse
import itertools
import json
import time

import torch
import work

WARM_UP = 10  # steps that do not count
EVALUATES = 25  # every so many steps


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    work.add_options(parser)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    print(json.dumps({"samples_per_second": train(options)}))


def train(options):
    torch.manual_seed(0)
    where = work.device(options.memory)
    model = work.Model(options.size).to(where)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batches = work.loader(options.size, options.batch_size, options.workers)
    began = evaluating = 0.0
    steps = itertools.islice(itertools.chain.from_iterable(itertools.repeat(batches)), options.steps)
    for step, texts in enumerate(steps):
        if step == WARM_UP:
            began, evaluating = finished(where), 0.0
        optimizer.zero_grad()
        loss = model(texts.to(where, non_blocking=True))
        loss.backward()
        optimizer.step()
        if (step + 1) % EVALUATES == 0:
            evaluating += evaluate(model, texts, where)
    return (options.steps - WARM_UP) * options.batch_size / (finished(where) - began - evaluating)


def evaluate(model, texts, where):
    began = finished(where)
    with torch.no_grad():
        model(texts.to(where)).item()
    return finished(where) - began


def finished(where):
    if where.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    main()
