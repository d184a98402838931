/// Rules about the marks that exclude data from backups.
extension AuditRule {
  static let ofMarks = [userDataMarked, systemDirectoryMarked, tagInUserData]

  static let userDataMarked = AuditRule(
    id: "user-data-marked", level: .warning,
    title: "user data is marked as excluded from backups",
    advice: """
      No backup contains it, so it is lost with the device. Remove the mark, unless the app can \
      make or download the data again: then the data does not belong in Documents.
      """,
    source: "Technical Q&A QA1719", url: excludedFromBackup)

  static let systemDirectoryMarked = AuditRule(
    id: "system-directory-marked", level: .error,
    title: "a directory of the system is marked as excluded from backups",
    advice: """
      The mark covers everything below the directory, whoever stores it. Apps create directories \
      of their own for excluded data and mark these.
      """,
    source: "Technical Q&A QA1719, section iOS 5.1 and later", url: excludedFromBackup)

  static let tagInUserData = AuditRule(
    id: "tag-in-user-data", level: .warning,
    title: "a cache tag is in a directory of user data",
    advice: """
      Backup programs skip a directory with CACHEDIR.TAG. This one keeps user data in spite of the \
      tag; others do not. Remove the tag, or move the cache out of the user's documents.
      """,
    source: "Bryan Ford, Cache Directory Tagging Specification 0.6",
    url: "https://bford.info/cachedir/")

  private static let excludedFromBackup =
    "https://developer.apple.com/library/archive/qa/qa1719/_index.html"
}
