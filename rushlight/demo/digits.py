"""The handwritten digits that ship with the package (data/README.md has source and licence)."""

import gzip
from pathlib import Path

import rushlight as torch
from rushlight.utils.data import TensorDataset, random_split

PATH = Path(__file__).parent / "data" / "digits.bin.gz"
SIDE = 8
RECORD = SIDE * SIDE + 1
BRIGHTEST = 16


def load():
    """All images as float (count, 1, 8, 8) in 0..1, and their labels."""
    records = torch.frombuffer(bytearray(gzip.decompress(PATH.read_bytes())), dtype=torch.uint8).view(
        -1, RECORD
    )
    images = records[:, :-1].reshape(-1, 1, SIDE, SIDE).float() / BRIGHTEST
    return TensorDataset(images, records[:, -1].long())


def split(held_out=0.2, seed=0):
    """Training and held-out images: the same ones for the same seed."""
    digits = load()
    count = round(len(digits) * held_out)
    generator = torch.Generator().manual_seed(seed)
    return random_split(digits, [len(digits) - count, count], generator=generator)
