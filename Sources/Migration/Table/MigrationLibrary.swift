package import PolicyEngine
package import SystemIO

/// All available migration tables: built-in, of the system, of the user, and from the command line.
package struct MigrationLibrary: Sendable {
  /// The tables that could be read, in ascending order of precedence.
  package let tables: [MigrationTable]
  /// The mistakes in the files, in the order of the files.
  package let issues: [PolicyIssue]

  /// Reads the files, in ascending order of precedence. Never fails: mistakes are in `issues`.
  package init(_ sources: [PolicySource]) {
    var (tables, issues): ([MigrationTable], [PolicyIssue]) = ([], [])
    for source in sources {
      let (table, found) = MigrationTable.read(source)
      issues += found
      guard let table else { continue }
      tables.append(table)
    }
    self.tables = tables
    self.issues = issues + Self.duplicates(tables)
  }

  private init(_ tables: [MigrationTable], _ issues: [PolicyIssue]) {
    (self.tables, self.issues) = (tables, issues)
  }

  /// Returns the library with additional tables, such as those of apps' bundles, before all others:
  /// a user's table for an app replaces them.
  package func adding(_ further: [MigrationTable]) -> MigrationLibrary {
    MigrationLibrary(further + tables, issues)
  }

  /// Returns the mistakes in the file with a source name, or in all files if it is nil.
  package func lint(_ sourceName: String? = nil) -> [PolicyIssue] {
    issues.filter { sourceName == nil || $0.location.file == sourceName }
  }

  /// Returns the table for an app, or nil if only the general one applies. A later table replaces
  /// an earlier one.
  package func table(for app: ByteString, as packaging: Packaging) -> MigrationTable? {
    tables.last { !$0.isGeneral && $0.isFor(app, as: packaging) }
  }

  /// The table for all apps without one of their own.
  package var general: MigrationTable? { tables.last(where: \.isGeneral) }

  /// Finds tables of one origin that share a name or an app: the order of the files would determine
  /// which of them applies.
  private static func duplicates(_ tables: [MigrationTable]) -> [PolicyIssue] {
    var (names, apps): ([String: String], [String: String]) = ([:], [:])
    var issues: [PolicyIssue] = []
    for table in tables {
      let directory = table.location.file.split(separator: "/").dropLast().joined(separator: "/")
      if let other = names.updateValue(table.location.file, forKey: directory + "\n" + table.name) {
        issues.append(
          PolicyIssue(
            .duplicate, at: table.location, "the table '\(table.name)' is already in \(other)",
            expected: "another name"))
      }
      for (packaging, identifiers) in table.apps.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
        for app in identifiers {
          let key = "\(directory)\n\(packaging.rawValue)\n\(app)"
          guard let other = apps.updateValue(table.name, forKey: key) else { continue }
          issues.append(
            PolicyIssue(
              .duplicate, at: table.location,
              "the \(packaging.rawValue) app '\(app)' is already in the table '\(other)'",
              expected: "each app in one table"))
        }
      }
    }
    return issues
  }
}
