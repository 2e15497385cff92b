"""Reading devices: what they are, what they report now, and a sampler that reads them on time."""
