"""Quality: scores of a classifier in millionths, and thresholds chosen from labelled texts (`calibration`)."""
