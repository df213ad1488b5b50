"""SQL and tables of tuned question encoders."""
