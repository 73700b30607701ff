"""Engines that run units, behind the `Runner` that `tasks.chain.build` takes. Public: `local.Engine`, processes of this
machine.
"""
