"""Handwritten digits, trained by as many processes as the job has replicas.

Nothing in here knows of Trainshed: where the others are and who this one is comes from the environment
(MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE), where the model goes comes from AIP_MODEL_DIR, as on Vertex AI.
Without these variables it trains alone and keeps nothing. Needs torch and scikit-learn.
"""

import argparse
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def load() -> tuple[TensorDataset, TensorDataset]:
    """1797 pictures of 8 x 8 that come with scikit-learn, a quarter held out; the same in every process."""
    pictures, digits = load_digits(return_X_y=True)
    parts = train_test_split(pictures / 16.0, digits, test_size=0.25, random_state=0, stratify=digits)
    train_x, test_x, train_y, test_y = (torch.as_tensor(part) for part in parts)
    return TensorDataset(train_x.float(), train_y), TensorDataset(test_x.float(), test_y)


def build() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def accuracy(model: nn.Module, data: TensorDataset) -> float:
    pictures, digits = data.tensors
    model.eval()
    with torch.no_grad():
        right = model(pictures).argmax(dim=1) == digits
    return right.float().mean().item()


def save(model: nn.Module, reached: float, folder: str) -> None:
    """Under a temporary name first, so that nobody ever loads half a model."""
    path = Path(folder, "model.pt")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    torch.save({"state_dict": model.state_dict(), "accuracy": reached}, part)
    part.replace(path)
    print(f"model: {path}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)  # the replicas share one machine
    for name, alone in (
        ("MASTER_ADDR", "127.0.0.1"),
        ("MASTER_PORT", "0"),
        ("RANK", "0"),
        ("WORLD_SIZE", "1"),
    ):
        os.environ.setdefault(name, alone)
    dist.init_process_group(backend="gloo", init_method="env://")
    rank, world = dist.get_rank(), dist.get_world_size()

    train, test = load()
    sampler = DistributedSampler(train, num_replicas=world, rank=rank, seed=0)
    loader = DataLoader(train, batch_size=options.batch_size, sampler=sampler)
    model = DistributedDataParallel(build())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    print(f"rank {rank} of {world}: {len(sampler)} of {len(train)} training pictures", flush=True)

    for epoch in range(options.epochs):
        began = time.perf_counter()
        sampler.set_epoch(epoch)
        model.train()
        total = 0.0
        for pictures, digits in loader:
            optimizer.zero_grad()
            loss = criterion(model(pictures), digits)
            loss.backward()  # gradients are averaged over all replicas here
            optimizer.step()
            total += loss.item()
        took = time.perf_counter() - began
        print(f"epoch {epoch + 1}/{options.epochs}  loss {total / len(loader):.4f}  {took:.2f} s", flush=True)

    if rank == 0:
        reached = accuracy(model.module, test)
        print(f"accuracy: {reached:.4f} on {len(test)} held-out pictures")
        if folder := os.environ.get("AIP_MODEL_DIR"):
            save(model.module, reached, folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
