"""What lies below the root of a source: walked, named, drawn, put together into units, taken out of tarballs."""
