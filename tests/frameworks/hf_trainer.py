"""transformers' Trainer: a tiny BERT, evaluation and checkpoints by steps, accumulation, a costly callback."""

import argparse

import timers
import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)


class Sentences(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(5, 900, (count, 48), generator=generator)
        self.labels = (self.ids.float().mean(1) > 452).long()

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "attention_mask": torch.ones(48).long(), "labels": self.labels[index]}


class Vocabulary(TrainerCallback):
    """Counts how often each token embedding is near zero, in Python: the costly callback."""

    @timers.timed("callback")
    def on_step_end(self, args, state, control, model=None, **kwargs):
        self.near = 0
        for value in model.bert.embeddings.word_embeddings.weight.detach().flatten()[:40_000].tolist():
            if abs(value) < 0.01:
                self.near += 1


class Losses(TrainerCallback):
    def __init__(self):
        self.losses = []

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            self.losses.append(logs["loss"])

    def on_train_begin(self, *args, **kwargs):
        timers.restart()

    def on_train_end(self, *args, **kwargs):
        timers.stop()


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def watch():
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    timers.watch(BertForSequenceClassification, "forward", "forward")
    timers.watch(torch.Tensor, "backward", "backward")
    timers.watch(torch.optim.AdamW, "step", "step")
    timers.watch(torch.nn.utils, "clip_grad_norm_", "clip")
    timers.watch(BertForSequenceClassification, "zero_grad", "zero_grad")
    timers.watch(Trainer, "_save_checkpoint", "checkpoint")
    timers.watch(Trainer, "evaluate", "validation")
    timers.watch(Trainer, "training_step", "training_step")
    timers.watch(Trainer, "log", "log")
    timers.watch(_BaseDataLoaderIter, "__next__", "data")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--max-steps", type=int, default=-1)
    parser.add_argument("--out", default="out")
    args = parser.parse_args()
    set_seed(7)
    torch.set_num_threads(1)
    config = BertConfig(
        vocab_size=1000, hidden_size=96, num_hidden_layers=2, num_attention_heads=4, intermediate_size=192
    )
    losses = Losses()
    arguments = TrainingArguments(
        output_dir=args.out,
        num_train_epochs=2,
        max_steps=args.max_steps,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        gradient_accumulation_steps=args.accumulate,
        dataloader_num_workers=2,
        eval_strategy="steps",
        eval_steps=30,
        save_steps=20,
        logging_steps=5,
        report_to=["tensorboard"],
        use_cpu=True,
    )
    if timers.OUT:
        watch()
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=arguments,
        train_dataset=Sentences(16 * 60, 1),
        eval_dataset=Sentences(320, 2),
        compute_metrics=accuracy,
        callbacks=[Vocabulary(), losses],
    )
    trainer.train()
    print("losses", losses.losses)


if __name__ == "__main__":
    main()
