"""Import and export: npz files, zarr groups and HDF5 files, and Arrow without a copy.

`Group` has the functions as methods. A module each: `npz`, `zarr`, `hdf5`, `arrow`. What they share is in `walk`.
Content goes through in pieces, so memory does not grow with it.
"""
