"""``engram up`` with stand-ins for Engram's own processes: role -> what Python runs, as JSON, then flags."""

import json
import sys

from engram.config.settings import Settings
from engram.wings.local.runtime import launcher, supervisor


def main() -> int:
    """Start them, and return the exit code; ``stop_patience`` among the roles is in seconds."""
    roles = json.loads(sys.argv[1])
    launcher.PORT_PATIENCE_SECONDS = 0.0
    launcher.STOP_PATIENCE_SECONDS = roles.pop("stop_patience", 20.0)
    supervisor.BACKOFF_SECONDS = 0.01
    commands = launcher.Commands(**{name: (sys.executable, "-c", text) for name, text in roles.items()})
    return launcher.run(Settings(), sample="--sample" in sys.argv, commands=commands)


if __name__ == "__main__":
    sys.exit(main())
