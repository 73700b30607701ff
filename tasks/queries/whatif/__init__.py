"""What-if: what moving bounds would let in and keep out, from the measures of a published dataset; no text is read but
for the samples.

Measures of all documents lie in a local DuckDB file beside a number whose bit i says whether bound i is broken. Moving
a bound reads its own column and that number, so an answer over a million documents takes milliseconds. The file is made
once for each dataset, and is refused where it does not give the decisions that the dataset has.
"""

from tasks.queries.whatif.answer import whatif
from tasks.queries.whatif.moves import moved
from tasks.queries.whatif.spread import quantiles

__all__ = ["moved", "quantiles", "whatif"]
