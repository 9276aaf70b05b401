"""What holds for every test, wherever it stands."""

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # before Haystack is imported, which reports and keeps a file
os.environ["LANGSMITH_TRACING"] = "false"
