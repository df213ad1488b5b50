"""Names that commands share without reading all settings."""

DATA_FOLDER = ".engram"
"""Folder of the embedded servers' data, unless ENGRAM_DATA_DIR names another."""
ADDRESS_FILE = "address"
"""File of the data folder in which a running ``engram up`` says where it answers."""
