import signal
import sys
import threading
from pathlib import Path

import hypothesis
import mpmath
import torch

# The tests share modules such as cases.py; with importlib mode pytest does not add their folder by itself.
sys.path.insert(0, str(Path(__file__).parent))

from browser import chromium, observed, page  # noqa: F401  fixtures for every test that looks at a page
from lossmith.torch_compat import has_triton

collect_ignore = [] if has_triton() else ["gpu_compilation.py"]

# Where the suite runs in the background the shell has interrupts ignored, and programs that a test starts would inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The suite runs one process a core; threads of their own would only wait for one another.
torch.set_num_threads(1)

# What an example may take is no property of the code: a busy machine takes longer.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")

# Digits of the references, set once because they are global.
mpmath.mp.dps = 120
