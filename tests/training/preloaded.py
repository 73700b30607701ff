"""What the process that ranks are forked from does before the first of them: all that each of them would load anew."""

import numpy as np
import torch

import training.loop  # noqa: F401
from corpusmill.tokens.order import Permutation
from tests.training.toy import config
from training.checkpoints import saver  # noqa: F401
from training.model import GPT

torch.set_num_threads(1)
with torch.device("meta"):
    GPT(config().model, 97, False)  # torch loads half of its compiler for the first tensor without memory
Permutation.of(7, 1)(np.arange(7))
