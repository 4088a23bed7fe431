"""The size of batches by other tools' finders, each used as its documentation shows; prints it."""

import argparse
import itertools
import json

import torch
import work

STEPS = 3  # of a trial, Lightning's default
LARGEST = 4096  # where accelerate's begins


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    work.add_options(parser)
    parser.add_argument("finder", choices=FINDERS)
    options = parser.parse_args()
    print(json.dumps({"size": FINDERS[options.finder](options)}))


def by_accelerate(options):
    from accelerate.utils import find_executable_batch_size

    where = work.device(options.memory)

    @find_executable_batch_size(starting_batch_size=LARGEST)
    def train(batch_size):
        model = work.Model(options.size).to(where)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        for texts in itertools.islice(work.loader(options.size, batch_size, options.workers), STEPS):
            optimizer.zero_grad()
            model(texts.to(where)).backward()
            optimizer.step()
        return batch_size

    return train()


def by_lightning(options, mode):
    import lightning
    from lightning.pytorch.tuner import Tuner

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.batch_size = 4
            self.model = work.Model(options.size)

        def training_step(self, texts):
            return self.model(texts)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-4)

        def train_dataloader(self):
            return work.loader(options.size, self.batch_size, options.workers)

    work.device(options.memory)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(max_steps=STEPS, devices=1, **quiet)
    return Tuner(trainer).scale_batch_size(Module(), mode=mode, steps_per_trial=STEPS, init_val=4)


FINDERS = {
    "accelerate": by_accelerate,
    "lightning-power": lambda options: by_lightning(options, "power"),
    "lightning-binsearch": lambda options: by_lightning(options, "binsearch"),
}


if __name__ == "__main__":
    main()
