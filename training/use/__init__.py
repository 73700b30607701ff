"""What a trained model is used for: opened, exported, sampled from, evaluated.

Public: `trained.open_trained`, `llama.export`, `sample.sample`, `report` (evaluation), `choices` (multiple choice),
`seen` (held-out documents that share text with what was trained on).
"""
