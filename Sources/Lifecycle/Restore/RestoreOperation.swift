public import ArchiveStore
internal import SystemIO

/// Carries out a `RestorePlan`.
///
/// Everything is made in a staging folder beside the target, on the target's file system: each blob's
/// hash is checked before its bytes are written, metadata is set when the content is there, folders'
/// times last. Then the volume is synced and the staging folder renamed. An operation that cannot go
/// on (no space, say) removes the staging folder and leaves the target as it was. A file whose data
/// is damaged is left out and named; the others are restored.
public struct RestoreOperation: ~Copyable {
  private let plan: RestorePlan
  private let reader: RepositoryReader

  /// Prepares an operation.
  public init(_ plan: RestorePlan, from reader: RepositoryReader) {
    self.plan = plan
    self.reader = reader
  }

  /// Restores, and tells what was done.
  public consuming func run() throws -> RestoreReport {
    let start = Host.monotonicSeconds()
    guard let name = plan.target.lastComponent else {
      throw LifecycleError(.usage, "cannot restore to '\(plan.target)': it has no name")
    }
    let parent = try openParent()
    let staging = ByteString(".sandboxctl-restore-" + Host.randomHex(bytes: 8))
    try parent.createFolder(staging, permissions: 0o700)
    do {
      var report = try fill(parent.folder(staging), placing: staging, as: name, in: parent)
      report.seconds = Host.monotonicSeconds() - start
      return report
    } catch {
      try? parent.removeTree(staging)
      throw error
    }
  }

  private func openParent() throws -> Folder {
    var parts = plan.target.components
    parts.removeLast()
    let joined = ByteString(parts.map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
    if plan.target.isAbsolute { return try Folder.make(path: ByteString("/").appending(joined)) }
    return try Folder.make(path: joined.isEmpty ? "." : joined)
  }

  private func fill(
    _ folder: consuming Folder, placing staging: ByteString, as name: ByteString,
    in parent: borrowing Folder
  ) throws -> RestoreReport {
    switch plan.source {
    case .folder(let tree, let entry):
      let last = try folder.duplicate()
      var writer = try TreeWriter(root: folder, reader: reader)
      try writer.write(tree)
      if let entry { writer.finishRoot(entry) }
      try last.syncVolume()
      try parent.rename(staging, to: name, in: parent)
      try parent.sync()
      return writer.takeReport()
    case .single(let entry):
      let last = try folder.duplicate()
      var writer = try TreeWriter(root: folder, reader: reader)
      try writer.make(entry, named: name, at: name)
      try last.syncVolume()
      let isThere = try last.statusIfPresent(name) != nil
      if isThere { try last.rename(name, to: name, in: parent, replacing: false) }
      try parent.removeTree(staging)
      try parent.sync()
      return writer.takeReport()
    }
  }
}
