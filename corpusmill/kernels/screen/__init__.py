"""The benchmark screen: n-grams of items in one table, looked for in documents, hits confirmed on text (`screen`)."""
