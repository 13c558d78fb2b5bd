"""Disparity from two views. A belief about the map comes in as a function, or as a `Belief`."""

METHOD_VERSION = 7
"""Version of the results of stereo matching. Raise it by one with every change of results: cached outcomes are then
made again."""
