"""Small synthetic data in the formats of the data sets that the programs read."""

from __future__ import annotations

import pickle
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

_MNIST = (("train", 320), ("t10k", 64))


def write(folder: Path) -> None:
    """Write all of it; what is there already is left alone."""
    if folder.exists():
        return
    random = np.random.default_rng(0)
    _mnist(folder, random)
    _cifar(folder, random)
    _stl(folder, random)
    _text(folder, random)
    _cora(folder, random)
    _images(folder, random)


def _bytes(random: np.random.Generator, *shape: int) -> Any:
    return random.integers(0, 255, shape, dtype=np.uint8)


def _mnist(folder: Path, random: np.random.Generator) -> None:
    for name in ("MNIST", "FashionMNIST"):
        raw = folder / name / "raw"
        raw.mkdir(parents=True)
        for part, count in _MNIST:
            labels = random.integers(0, 10, count, dtype=np.uint8)
            for kind, array in (
                ("images-idx3", _bytes(random, count, 28, 28)),
                ("labels-idx1", labels),
            ):
                head = struct.pack(">HBB", 0, 8, array.ndim)
                size = struct.pack(f">{array.ndim}I", *array.shape)
                (raw / f"{part}-{kind}-ubyte").write_bytes(head + size + array.tobytes())


def _cifar(folder: Path, random: np.random.Generator) -> None:
    ten = folder / "cifar-10-batches-py"
    ten.mkdir()
    for name in (*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"):
        labels = random.integers(0, 10, 16).tolist()
        (ten / name).write_bytes(pickle.dumps({"data": _bytes(random, 16, 3072), "labels": labels}))
    names = [str(n) for n in range(100)]
    (ten / "batches.meta").write_bytes(pickle.dumps({"label_names": names[:10]}))
    hundred = folder / "cifar-100-python"
    hundred.mkdir()
    for name, count in (("train", 8), ("test", 4)):
        fine = random.integers(0, 100, count).tolist()
        batch = {"data": _bytes(random, count, 3072), "fine_labels": fine}
        (hundred / name).write_bytes(pickle.dumps(batch))
    (hundred / "meta").write_bytes(pickle.dumps({"fine_label_names": names}))


def _stl(folder: Path, random: np.random.Generator) -> None:
    place = folder / "stl10_binary"
    place.mkdir()
    for part in ("train", "test"):
        (place / f"{part}_X.bin").write_bytes(_bytes(random, 16, 3, 96, 96).tobytes())
        labels = random.integers(1, 11, 16, dtype=np.uint8)
        (place / f"{part}_y.bin").write_bytes(labels.tobytes())
    (place / "unlabeled_X.bin").write_bytes(_bytes(random, 2, 3, 96, 96).tobytes())
    (place / "class_names.txt").write_text("\n".join(map(str, range(10))))


def _text(folder: Path, random: np.random.Generator) -> None:
    place = folder / "wikitext-2"
    place.mkdir()
    for part, lines in (("train", 160), ("valid", 40), ("test", 40)):
        text = "\n".join(
            " ".join(f"w{n}" for n in random.integers(0, 200, 20)) for _ in range(lines)
        )
        (place / f"{part}.txt").write_text(text + "\n")


def _cora(folder: Path, random: np.random.Generator) -> None:
    """A small graph, with as many nodes as the programs number in their splits."""
    place = folder / "cora"
    place.mkdir()
    count, features = 2708, 24
    kinds = random.integers(0, 7, count)
    rows = (
        "\t".join([str(n), *map(str, random.integers(0, 2, features)), f"kind{kinds[n]}"])
        for n in range(count)
    )
    (place / "cora.content").write_text("\n".join(rows) + "\n")
    edges = random.integers(0, count, (3000, 2))
    (place / "cora.cites").write_text("".join(f"{a}\t{b}\n" for a, b in edges))
    with tarfile.open(folder / "cora.tgz", "w:gz") as archive:
        archive.add(place, "cora")


def _images(folder: Path, random: np.random.Generator) -> None:
    from PIL import Image

    for place, size, count in (
        ("pictures/train/a", 224, 4),
        ("pictures/val/a", 224, 2),
        ("BSDS300/images/train", 264, 3),
        ("BSDS300/images/test", 264, 2),
        ("style/a", 72, 3),
    ):
        (folder / place).mkdir(parents=True)
        for n in range(count):
            picture = Image.fromarray(_bytes(random, size, size, 3))
            picture.save(folder / place / f"{n}.jpg")
