import sys
from pathlib import Path

import torch

# The tests share cases.py; with importlib mode pytest does not add their folder by itself.
sys.path.insert(0, str(Path(__file__).parent))

# The suite runs one process a core; threads of their own would only wait for one another.
torch.set_num_threads(1)
