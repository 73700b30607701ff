"""The bytes that a dataset was made from: noted at publication, compared later."""
