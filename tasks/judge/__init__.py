"""Judge: attribute groups (`groups`) measured of every shard (`judge`); nothing is decided here."""
