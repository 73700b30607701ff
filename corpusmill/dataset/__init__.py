"""What is known about a published dataset, from its manifest and the objects it names: funnel, card, lineage, rejects,
labels, contamination, proofs, verification. Imports no tasks: pages and commands for readers need nothing that
builds.
"""
