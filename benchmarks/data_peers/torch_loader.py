"""torch's DataLoader on the integers of grain_pipeline.py; one JSON object a case."""
import json
import time

import torch
from torch.utils.data import DataLoader, Dataset

BATCH = 32


class Integers(Dataset):
    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        return int(index) + 1


def main():
    torch.set_num_threads(1)
    for workers in (0, 2):
        rates = []
        for _ in range(3):
            it = iter(DataLoader(Integers(), BATCH, shuffle=True, num_workers=workers))
            for _ in range(11):
                next(it)
            start = time.perf_counter()
            for _ in range(2000):
                next(it)
            rates.append(2000 * BATCH / (time.perf_counter() - start))
            del it
        name = f"{workers} read threads" if workers == 0 else f"{workers} workers"
        print(json.dumps({"case": f"memory 1M ints shuffle+map+batch32, {name}", "value": sorted(rates)[1], "unit": "records/s"}), flush=True)


if __name__ == "__main__":
    main()
