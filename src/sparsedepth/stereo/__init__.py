"""The middle layer: disparity from two views. What is believed of it comes in as a function, or as a `Belief`."""
