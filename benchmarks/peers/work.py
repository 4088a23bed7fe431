"""What all of them train: a language model on texts of one length, in as much memory as it may take."""

import resource

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TEXTS = 16384
SIZES = {  # layers, width, tokens of a text, words
    "large": (12, 768, 512, 8192),
    "small": (2, 128, 64, 512),
}


class Texts(Dataset):
    """Made up by their number: reading costs nothing to speak of."""

    def __init__(self, size):
        _, _, self.length, self.words = SIZES[size]

    def __len__(self):
        return TEXTS

    def __getitem__(self, index):
        made = torch.Generator().manual_seed(index)
        return torch.randint(self.words, (self.length + 1,), generator=made)


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        layers, width, length, words = SIZES[size]
        self.embed = nn.Embedding(words, width)
        self.at = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, 0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, words)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, texts):
        """The loss of telling each next word."""
        seen, next_words = texts[:, :-1], texts[:, 1:]
        hidden = self.layers(self.embed(seen) + self.at, mask=self.mask, is_causal=True)
        return nn.functional.cross_entropy(self.head(hidden).flatten(0, 1), next_words.flatten())


def loader(size, batch, workers):
    return DataLoader(Texts(size), batch, shuffle=True, num_workers=workers, drop_last=True, pin_memory=True)


def device(memory):
    """Where it is trained, with no more than so many GB there."""
    if torch.cuda.is_available():
        torch.cuda.set_per_process_memory_fraction(memory * 1e9 / torch.cuda.get_device_properties(0).total_memory)
        return torch.device("cuda")
    resource.setrlimit(resource.RLIMIT_AS, (int(memory * 1e9),) * 2)
    return torch.device("cpu")


def add_options(parser):
    parser.add_argument("--size", choices=SIZES, default="large", help="of the model (default: large)")
    parser.add_argument("--memory", type=float, default=24.0, metavar="GB", help="that it may take (default: 24)")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="default: 2")
