import Foundation
import TestSupport

/// Runs a statement on a database with the program `sqlite3`, or with Python's module `sqlite3`.
func query(_ database: String, _ statement: String) throws -> String {
  let program = """
    import sqlite3, sys
    rows = sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchall()
    print("\\n".join("|".join("" if v is None else str(v) for v in row) for row in rows))
    """
  let result =
    Program.exists("sqlite3")
    ? try Program.run("sqlite3", ["-batch", database, statement])
    : try Program.run("python3", ["-c", program, database, statement])
  return (result.output + result.errors).trimmingCharacters(in: .whitespacesAndNewlines)
}

/// Whether databases can be queried.
let hasSQLite = (try? query(":memory:", "SELECT 1")) == "1"
