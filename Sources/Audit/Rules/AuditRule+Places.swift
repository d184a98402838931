/// Rules about the directory in which data is stored.
extension AuditRule {
  static let ofPlaces = [
    recreatableData, userDataInCache, unpromisedDirectory, inboxLeftover, temporaryLeftover,
    platformDifference,
  ]

  static let recreatableData = AuditRule(
    id: "recreatable-data", level: .warning,
    title: "data that can be made again is backed up",
    advice: """
      Each backup contains it, and the store refuses apps for 2 MB of such data. Move it to \
      Library/Caches, or exclude it from backups after each save.
      """,
    source: "Technical Q&A QA1719; App Programming Guide for iOS, App Backup Best Practices",
    url: "https://developer.apple.com/library/archive/qa/qa1719/_index.html")

  static let userDataInCache = AuditRule(
    id: "user-data-in-cache", level: .error,
    title: "user data is in Library/Caches or tmp",
    advice: """
      The system may delete it when space is low, and no backup contains it. Store documents in \
      Documents or Library/Application Support.
      """,
    source: "File System Programming Guide, iOS Standard Directories, table 1-1",
    url: fileSystemGuide)

  static let unpromisedDirectory = AuditRule(
    id: "unpromised-directory", level: .warning,
    title: "files are outside of all directories that the platform promises to keep",
    advice: """
      The platform neither backs up such a directory nor promises to move it during an update. \
      Store the files in Documents or Library/Application Support.
      """,
    source: """
      App Programming Guide for iOS, Files Saved During App Updates; Technical Note TN2285
      """,
    url: "https://developer.apple.com/library/archive/technotes/tn2285/_index.html")

  static let inboxLeftover = AuditRule(
    id: "inbox-leftover", level: .note,
    title: "files of other apps are still in Documents/Inbox after 7 days",
    advice: """
      The app can read and delete them there, but not change them, and each backup contains them. \
      Move a file out of the Inbox when the user opens it, and delete the others.
      """,
    source: "File System Programming Guide, iOS Standard Directories, table 1-1",
    url: fileSystemGuide)

  static let temporaryLeftover = AuditRule(
    id: "temporary-leftover", level: .note,
    title: "files are still in tmp after 3 days",
    advice: """
      They take space until the system deletes them. Delete temporary files as soon as they are no \
      longer needed.
      """,
    source: "File System Programming Guide, iOS Standard Directories, table 1-1",
    url: fileSystemGuide)

  static let platformDifference = AuditRule(
    id: "platform-difference", level: .note,
    title: "the platform's own backup and this program's differ",
    advice: """
      A restore from the one does not contain the same data as a restore from the other. The \
      command shows which rules decide.
      """,
    source: "Optimizing Your App's Data for iCloud Backup",
    url: """
      https://developer.apple.com/documentation/foundation/\
      optimizing_your_app_s_data_for_icloud_backup
      """)

  private static let fileSystemGuide = """
    https://developer.apple.com/library/archive/documentation/FileManagement/Conceptual/\
    FileSystemProgrammingGuide/FileSystemOverview/FileSystemOverview.html
    """
}
