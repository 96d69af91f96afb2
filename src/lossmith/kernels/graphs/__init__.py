"""Formulas as graphs: the formula of a loss is recorded, differentiated and put in terms of the few operations that kernels have.

Kernels in other languages are printed from these. Nothing here knows a loss by name, or a language.
"""
