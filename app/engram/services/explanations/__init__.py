"""Why: which verdicts are behind what a query found, and what moved a memory."""
