"""Kalman filter: verdicts, how they update what was learned, daily limits of judges, replay."""
