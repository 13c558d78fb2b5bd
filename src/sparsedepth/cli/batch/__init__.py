"""Restore many files: plan the outputs, restore file by file, keep a journal."""
