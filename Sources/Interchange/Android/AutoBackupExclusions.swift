package import SystemIO

/// The entries that the rules of Auto Backup exclude from a backup, by the path that the reason is
/// about.
package struct AutoBackupExclusions: Sendable, Hashable {
  /// The excluded files at or below a path.
  package struct Group: Sendable, Hashable {
    /// The logical path.
    package let path: ByteString
    /// The reason as a clause.
    package let reason: String
    /// The number of files, links and special files.
    package fileprivate(set) var files = 0
    /// The size of the files in bytes.
    package fileprivate(set) var size: UInt64 = 0
  }

  /// The groups in the order of the first file of each, at most `limit`.
  package private(set) var groups: [Group] = []
  private var numbers: [GroupKey: Int] = [:]
  /// The number of all excluded entries, directories included.
  package private(set) var entries = 0
  /// The number of excluded files, links and special files.
  package private(set) var files = 0
  /// The size of the excluded files in bytes.
  package private(set) var size: UInt64 = 0

  /// The maximum number of groups; more files are only counted.
  package static let limit = 10_000

  private struct GroupKey: Hashable {
    let path: ByteString
    let reason: String
  }

  /// Adds an entry.
  ///
  /// - Parameter below: The number of last components of its path that are below the path that the
  ///   reason is about.
  mutating func append(_ entry: ForeignEntry, below: Int, reason: String) {
    entries += 1
    if entry.kind == .directory { return }
    files += 1
    var bytes: UInt64 = 0
    if case .file(let size) = entry.kind { bytes = size }
    size += bytes
    let key = GroupKey(path: ByteString(joining: entry.path.dropLast(below)), reason: reason)
    var number = numbers[key]
    if number == nil, groups.count < Self.limit {
      number = groups.count
      numbers[key] = number
      groups.append(Group(path: key.path, reason: reason))
    }
    guard let number else { return }
    groups[number].files += 1
    groups[number].size += bytes
  }
}

extension AutoBackupRules.Reason {
  /// The reason as a clause.
  var clause: String {
    switch self {
    case .disabled: "the app disables backups"
    case .encryptionRequired: "the app permits only backups that are encrypted on the device"
    case .rule: "a rule excludes it"
    case .systemDirectory(let name) where AutoBackupRules.uselessDirectories.contains(name):
      "Android excludes it from backups to the cloud"
    case .systemDirectory, .notIncluded: "no rule includes it"
    case .flagsRequired: "its rule requires another kind of backup"
    }
  }

  /// Returns the number of components of a location that are below the path of the reason: of a
  /// rule, or the app's directory that contains it.
  func depth(below location: AutoBackupLocation) -> Int {
    switch self {
    case .disabled, .encryptionRequired: location.path.count
    case .rule(let rule), .flagsRequired(let rule):
      location.path.count - rule.location.path.count
    case .systemDirectory, .notIncluded: max(0, location.path.count - 1)
    }
  }
}
