"""What a query reads, and the episode it leaves."""
