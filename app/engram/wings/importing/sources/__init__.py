"""Sources of documents: folders, file systems by address, websites."""
