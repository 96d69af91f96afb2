"""Time and memory of CKA between two 20-layer networks on 10,000 examples."""

import argparse
import resource
import time

import torch
from torch import nn

from lossmith.analysis import layer_similarity


def network(seed: int, depth: int = 20) -> nn.Sequential:
    """Return a network of 20 convolutions in three stages, 16 to 64 channels, on 32 x 32 images."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    channels = 3
    for layer in range(depth):
        width, stride = 16 << (layer * 3 // depth), 2 if layer in (7, 14) else 1
        layers.append(nn.Sequential(nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()))
        channels = width
    return nn.Sequential(*layers)


def main() -> None:
    """Print what it takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=10_000)
    first, second = network(0), network(1)
    inputs = torch.randn(parser.parse_args().examples, 3, 32, 32)
    names = [str(layer) for layer in range(20)]
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, processor = time.perf_counter(), time.process_time()
    similarity = layer_similarity(first, second, inputs, first_layers=names, second_layers=names)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    more = (peak - idle) / 1024
    print(f"{similarity.cka.shape} in {wall:.1f} s, {processor:.1f} s of one processor")
    print(f"{more:.0f} MB more than the inputs, {peak / 1024:.0f} MB in all")

    processor = time.process_time()
    with torch.no_grad():
        for batch in inputs.split(64):
            first.eval()(batch), second.eval()(batch)
    print(f"of which the networks themselves: {time.process_time() - processor:.1f} s of one processor")


if __name__ == "__main__":
    main()
