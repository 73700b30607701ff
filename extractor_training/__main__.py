"""`python -m extractor_training`."""

from extractor_training.train import main

if __name__ == "__main__":
    main()
