"""Disparity from two views. A belief about the map comes in as a function, or as a `Belief`."""
