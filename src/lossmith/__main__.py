"""``python -m lossmith``."""

import sys

from lossmith.command_line import main

sys.exit(main())
