"""Reads a SARIF log with sarif-tools and prints the number of findings of each severity.

usage: read_sarif.py LOG
"""

import sys

from sarif import loader

report = loader.load_sarif_file(sys.argv[1]).get_report()
for severity in ("error", "warning", "note"):
    print(f"{severity}: {report.get_issue_count_for_severity(severity)}")
