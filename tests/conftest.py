import sys
from pathlib import Path

import mpmath
import torch

# The tests share modules such as cases.py; with importlib mode pytest does not add their folder by itself.
sys.path.insert(0, str(Path(__file__).parent))

from browser import chromium, observed, page  # noqa: F401  fixtures for every test that looks at a page

# The suite runs one process a core; threads of their own would only wait for one another.
torch.set_num_threads(1)

# Digits of the references, set once because they are global.
mpmath.mp.dps = 120
