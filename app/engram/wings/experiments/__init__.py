"""The wing of experiments: arms, exploration, measured lift, and one question under two arms."""
