"""Language: of a document (`identify`), by windows of its text, with a compressed fastText model that we read ourselves
(`ftz_model`).
"""
