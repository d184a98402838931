public import ArchiveStore
internal import SandboxModel
public import SystemIO

/// What a restore into a new place will do: from which snapshot, which path of it, to where.
///
/// A plan is made from the snapshot and a look at the target; it changes nothing.
public struct RestorePlan: Sendable {
  /// The snapshot that is restored from.
  public let snapshot: StoredSnapshot
  /// The logical path in the snapshot; empty for all of it.
  public let path: ByteString
  /// What becomes of it: this folder, or this file when the path names no folder.
  public let target: ByteString
  /// How many entries of each kind there are to make.
  public let totals: RestoreTotals

  let source: SnapshotSource

  /// Plans to restore `path` of a snapshot as `target`, which must not exist or be an empty folder.
  public static func make(
    _ snapshot: StoredSnapshot, path: ByteString, to target: ByteString,
    from reader: RepositoryReader
  ) throws -> RestorePlan {
    try checkIsNew(target)
    let source = try reader.source(path, in: snapshot)
    var totals = RestoreTotals()
    switch source {
    case .single(let entry): totals.count(entry)
    case .folder(let tree, _):
      try reader.walkPastDamage(tree) { path, finding in
        switch finding {
        case .entry(let entry): totals.count(entry)
        case .damage(let error): if path.isEmpty, totals == RestoreTotals() { throw error }
        }
        return .enter
      }
    }
    return RestorePlan(
      snapshot: snapshot, path: path, target: target, totals: totals, source: source)
  }

  private static func checkIsNew(_ target: ByteString) throws {
    let folder: Folder
    do throws(SystemError) {
      folder = try Folder.open(path: target)
    } catch {
      if error.isAbsent { return }
      throw LifecycleError(
        .failed, "cannot restore to '\(target)': \(error.reason)",
        hint: "name a folder that does not exist yet, or an empty one")
    }
    if try folder.isEmpty() { return }
    throw LifecycleError(
      .failed, "cannot restore to '\(target)': the folder is not empty",
      hint: "name a folder that does not exist yet, or an empty one")
  }
}

/// Entries by kind, and the bytes of their files.
public struct RestoreTotals: Sendable, Hashable {
  public var files = 0
  public var folders = 0
  public var links = 0
  public var specials = 0
  /// Bytes of the files, holes counted.
  public var bytes: UInt64 = 0

  /// Makes totals of nothing.
  public init() {}

  mutating func count(_ entry: TreeEntry) {
    switch entry.node {
    case .file(let content):
      files += 1
      bytes += content.size
    case .directory: folders += 1
    case .symlink: links += 1
    case .fifo, .socket, .characterDevice, .blockDevice: specials += 1
    }
  }
}
