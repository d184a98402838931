package import DeviceTransaction
package import SystemIO

/// The result of a restore.
package struct RestoreReport: Sendable {
  /// The entries that were created or replaced.
  package internal(set) var restored = RestoreTotals()
  /// The existing entries that were kept.
  package internal(set) var left = RestoreTotals()
  /// The entries that were removed because the snapshot does not have them.
  package internal(set) var deleted = RestoreTotals()
  /// Entries whose stored data is damaged: they are missing, unchanged, or without the attribute
  /// that the remark names.
  package internal(set) var damaged: [PathRemark] = []
  /// Whether the repository is damaged: not all of these need an older key.
  package internal(set) var isDamaged = false
  /// Entries or attributes that could not be restored, and entries that could not be removed.
  package internal(set) var failed: [PathRemark] = []
  /// Entries that the snapshot does not have and that were kept, with the reason.
  package internal(set) var spared: [PathRemark] = []
  /// Files of another state beside restored databases; they were moved away.
  package internal(set) var displaced: [PathRemark] = []
  /// Existing entries that were kept under another name beside the restored ones.
  package internal(set) var setAside: [SetAsideEntry] = []
  /// The number of entries whose owner could not be set for lack of privileges.
  package internal(set) var ownersNotSet = 0
  /// The entries whose metadata the file system does not keep; nil if there are none.
  package internal(set) var unkept: UnkeptMetadata?
  /// The duration in seconds.
  package internal(set) var seconds = 0.0

  package init(_ plan: RestorePlan) {
    left = plan.leaves
    (damaged, isDamaged) = (plan.damaged, plan.isDamaged)
    failed = plan.blocked
    spared = plan.spared
  }
}

/// An existing entry that a restore kept under another name, next to the entry that replaced it.
package struct SetAsideEntry: Sendable, Hashable {
  /// The path of the restored entry, below the target.
  package let path: ByteString
  /// The path at which the previous entry is kept, in the file system.
  package let keptPath: ByteString
  /// Whether the previous entry is a directory.
  package let isDirectory: Bool

  package init(path: ByteString, keptPath: ByteString, isDirectory: Bool = false) {
    (self.path, self.keptPath, self.isDirectory) = (path, keptPath, isDirectory)
  }
}

extension OperationError {
  /// Returns an error of a restore with the paths of the entries that it kept under other names
  /// before, which no report contains.
  static func naming(_ kept: [SetAsideEntry], in error: any Error) -> any Error {
    let known = (error as? SystemError).map { OperationError($0) } ?? error
    guard !kept.isEmpty, let known = known as? OperationError else { return error }
    let most = 10
    let paths = kept.prefix(most).map { "'\($0.keptPath)'" }.joined(separator: ", ")
    let more = kept.count > most ? ", and \(kept.count - most) more" : ""
    return known.adding(remark: "previous entries are kept as \(paths)\(more)")
  }
}
