"""Kernels: the few loops that are compiled, each a C function with a wrapper that checks its arrays.

One C file is one family; the Python file of the same name has its wrappers. Slow readable references are in tests/.
"""
