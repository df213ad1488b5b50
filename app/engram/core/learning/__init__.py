"""Learning: verdicts, how they move states (a Kalman filter), daily limits of judges, replay."""
