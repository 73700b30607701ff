"""Renderings for people, made from manifests and receipts only."""
