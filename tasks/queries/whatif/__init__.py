"""What-if: documents that moved bounds would add and remove, from the measures of a published dataset. Only samples
read text.

Measures of all documents are in a local DuckDB file, with a number whose bit i says whether bound i is broken. Moving
a bound reads its own column and that number, so an answer over a million documents takes milliseconds. The file is made
once for each dataset, and is refused if it does not reproduce the dataset's decisions.
"""

from tasks.queries.whatif.answer import whatif
from tasks.queries.whatif.moves import moved
from tasks.queries.whatif.spread import quantiles

__all__ = ["moved", "quantiles", "whatif"]
