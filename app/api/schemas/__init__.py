"""What the routes read and write."""
