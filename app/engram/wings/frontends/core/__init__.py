"""Values as the clients of other products write them."""
