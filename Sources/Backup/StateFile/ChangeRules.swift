internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import SandboxModel
internal import SystemIO

/// The rules that decide when a file need not be read again, and when its stored data need not be
/// looked up (docs/state-file.md, "Rules"). The rules are pure: times and answers are passed in.
enum ChangeRules {
  /// The write speed of the slowest disks, in bytes per second.
  private static let slowestWriting = Double(16 << 20)
  /// The maximum number of bytes that one call writes (write(2)). It sets the times only when it
  /// begins.
  private static let longestWriting = UInt64(2 << 30)

  /// Whether an entry had been unchanged long enough when it was read: its times precede the start
  /// of the run by more than `RunClock.margin`, and a file's content was not changed in the last
  /// minute, or in the longer time that one call may take to write all of it.
  ///
  /// - Parameters:
  ///   - status: the status after reading.
  ///   - time: the time of the reading, by the file system's clock.
  ///   - hadNoWriter: whether no process could write to the file when its reading began: then no
  ///     store through a mapping and no long call can leave its times unchanged.
  static func isStable(
    _ status: FileStatus, readAt time: Timestamp, in run: RunClock, hadNoWriter: Bool = false
  ) -> Bool {
    guard run.hasSettled(max(status.modified, status.changed)) else { return false }
    if status.kind != .file || (hadNoWriter && run.times == .exact) { return true }
    let writing = Double(min(status.size, longestWriting)) / slowestWriting
    return run.times != .loose && time.since(status.modified) >= max(run.mappingDelay, writing)
  }

  /// Whether an entry is unchanged since it was read.
  static func isUnchanged(_ known: KnownEntry, _ status: FileStatus) -> Bool {
    known.isStable && known.inode == status.identity.inode && known.kind == status.kind
      && (known.size == status.size || status.kind == .directory)
      && known.modified == status.modified && known.changed == status.changed
  }

  /// Whether a file looks like the copy that a refresh made of a file with known content: the
  /// original is unchanged since it was read, the copy has the same metadata, and it was not
  /// changed since the app can have changed it (docs/decisions/0007-copied-revisions.md).
  ///
  /// - Parameters:
  ///   - known: the recorded entry of the original.
  ///   - start: the time since which the revision of the copy is in use.
  static func looksCopied(
    _ copy: FileStatus, from original: FileStatus, _ known: KnownEntry, inUseSince start: Timestamp
  ) -> Bool {
    copy.kind == .file && copy.links == 1 && isUnchanged(known, original)
      && copy.identity.device == original.identity.device && copy.size == original.size
      && copy.modified == original.modified && copy.permissions == original.permissions
      && copy.user == original.user && copy.group == original.group && copy.changed < start
  }

  /// Whether a copy was begun after the original's last change: its birth time is later. False if
  /// the file system records no birth times.
  static func wasBegun(_ copy: FileStatus, after original: FileStatus) -> Bool {
    copy.born.map { original.changed < $0 } ?? false
  }

  /// Returns how far the contents in a container's record can be relied on.
  ///
  /// - Parameters:
  ///   - isHeld: whether the record's snapshot was in the listing taken after the lease.
  ///   - canRelyOnLists: whether no condemned object was listed.
  ///   - arePacksThere: whether all packs that existed when the record was written still exist.
  static func trust(
    snapshotIsHeld isHeld: Bool, canRelyOnLists: Bool, arePacksThere: Bool
  ) -> Trust {
    isHeld && canRelyOnLists && arePacksThere ? .asListed : .afterLookup
  }

  /// Whether all data of an entry is in the repository, by a lookup of each blob.
  ///
  /// - Parameters:
  ///   - contains: whether a blob is stored and can be relied on.
  ///   - list: the pieces of a list blob by its hash, its level and its bytes of the file, or nil
  ///     if it cannot be read.
  static func isStored(
    _ entry: TreeEntry, contains: (BlobID) -> Bool,
    list: (Digest, UInt8, UInt64) -> [Piece]?
  ) -> Bool {
    for attribute in entry.attributes {
      guard case .blob(let digest, _) = attribute.value else { continue }
      if !contains(BlobID(kind: .data, digest: digest)) { return false }
    }
    switch entry.node {
    case .file(let content):
      return isStored(content.pieces, level: content.level, contains: contains, list: list)
    case .directory: return false
    case .symlink, .fifo, .socket, .characterDevice, .blockDevice: return true
    }
  }

  private static func isStored(
    _ pieces: [Piece], level: UInt8, contains: (BlobID) -> Bool,
    list: (Digest, UInt8, UInt64) -> [Piece]?
  ) -> Bool {
    for case .blob(let digest, let length) in pieces {
      guard contains(BlobID(kind: level == 0 ? .data : .list, digest: digest)) else { return false }
      if level == 0 { continue }
      guard let inner = list(digest, level - 1, length),
        isStored(inner, level: level - 1, contains: contains, list: list)
      else { return false }
    }
    return true
  }
}

extension ChangeRules {
  /// How far recorded contents can be relied on.
  enum Trust: Sendable, Hashable {
    /// As recorded, including a directory's tree.
    case asListed
    /// Entry by entry, if each blob is found. A directory's tree is rebuilt from its entries.
    case afterLookup
  }
}
