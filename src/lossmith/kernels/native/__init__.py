"""Formulas as C: the graphs of loss and gradient are printed, compiled by the system's compiler, and kept on disk.

``LOSSMITH_KERNELS=native`` or ``lossmith.kernels.use("native")`` asks for it: no compiler is started unless one of them
did. Nothing here knows a loss by name.
"""
