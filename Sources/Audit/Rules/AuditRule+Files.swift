/// Rules about the form of files and about how they change.
extension AuditRule {
  static let ofFiles = [churn, flatFile, logOutgrown, xmlPropertyList]

  static let churn = AuditRule(
    id: "churn", level: .warning,
    title: "a file changes in almost every snapshot",
    advice: """
      Each backup stores and transfers it again. Write files only if their content has changed, \
      split them, or move data that can be made again to Library/Caches.
      """,
    source: "Energy Efficiency Guide for iOS Apps, Minimize I/O", url: minimizeIO)

  static let flatFile = AuditRule(
    id: "flat-file", level: .warning,
    title: "a flat file of more than 20 MB changes daily",
    advice: """
      The app writes the whole file for each change of a part. A database writes the changed pages \
      only, and a backup stores only these.
      """,
    source: "Energy Efficiency Guide for iOS Apps, Minimize I/O", url: minimizeIO)

  static let logOutgrown = AuditRule(
    id: "log-outgrown", level: .warning,
    title: "the log of a database is larger than the database",
    advice: """
      A reader that never ends prevents checkpoints, so the log grows without limit and reads \
      become slow. End read transactions, and checkpoint when the app goes to the background.
      """,
    source: "SQLite, Write-Ahead Logging, Avoiding Excessively Large WAL Files",
    url: "https://www.sqlite.org/wal.html#avoiding_excessively_large_wal_files")

  static let xmlPropertyList = AuditRule(
    id: "xml-property-list", level: .note,
    title: "a property list of more than 64 KiB is stored as XML",
    advice: """
      The binary form is smaller and is read several times as fast. Write it with the format \
      binary.
      """,
    source: "Property List Programming Guide, Reading and Writing Property-List Data",
    url: """
      https://developer.apple.com/library/archive/documentation/Cocoa/Conceptual/PropertyLists/\
      AboutPropertyLists/AboutPropertyLists.html
      """)

  private static let minimizeIO = """
    https://developer.apple.com/library/archive/documentation/Performance/Conceptual/\
    EnergyGuide-iOS/MinimizeIO.html
    """
}
