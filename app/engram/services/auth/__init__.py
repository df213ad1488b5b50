"""Identity and scope of a request, resolved once at the edge."""
