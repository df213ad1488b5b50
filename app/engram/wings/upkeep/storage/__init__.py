"""SQL of backups and of the doctor."""
