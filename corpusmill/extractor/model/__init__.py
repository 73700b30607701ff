"""What is content: features of lines, the line model, the chooser of the fallback, and the text put together from kept
lines. `model.npz` is trained by extractor_training/.
"""
