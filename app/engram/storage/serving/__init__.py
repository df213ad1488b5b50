"""What verdicts say of the queries that a collection served."""
