"""What NVIDIA's library answers and what it means; only `vendors/nvidia.py` loads the library.

Everything here is given the loaded module and handles, and knows their names and codes so that
nothing past `vendors/nvidia.py` has to.
"""
