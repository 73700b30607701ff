"""Personal data: where it stands in a text (`find`), kind by kind."""
