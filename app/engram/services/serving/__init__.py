"""How a collection answers: arms, shadow, comparison, measured lift, answers in words."""
