"""One file a vendor; each offers discover() and open functions, none knows another."""
