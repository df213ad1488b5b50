"""Documents become passages: read as they are structured, cut along that, each naming where it is from."""
