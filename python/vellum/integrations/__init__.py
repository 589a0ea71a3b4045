"""Doors into other libraries, a file each; none imports another."""
