"""Reading packed rows, beside a raw memory map."""
