"""Packed shards for other trainers, in the order that a plan gives: Grain (`grain`) and torchtitan (`torchtitan`).

Neither imports the package that it serves: each is loaded into a process that has it.
"""
