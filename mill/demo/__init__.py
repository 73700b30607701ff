"""The demo: text that every machine has (`pages`), a crawl made of it with its truth (`crawl`), and the run of it all
(`run`).
"""
