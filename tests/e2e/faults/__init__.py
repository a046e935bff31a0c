"""Faults done to real server processes, each a function that judges what it saw.

A fault takes a `Place` and returns its figures; a promise that does not hold is an AssertionError that says which.
The tests run each once; `lab.bench.faults` runs them many times with other seeds and prints the figures.
"""
