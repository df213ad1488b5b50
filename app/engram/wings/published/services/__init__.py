"""Attribution of credit, composition of keys, and their part in the life of a collection."""
