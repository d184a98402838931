public import ArchiveStore
public import Codecs
internal import SandboxModel
public import SystemIO

/// When a file need not be read again, and when what was stored of it need not be looked up
/// (docs/state-file.md, "Rules"). Pure: times and answers are given to it.
public enum ChangeRules {
  /// How much later than a change a run must have begun, in seconds, that it cannot have read what
  /// was there before a second change of the same time.
  static let margin = 2.0
  /// Bytes a second at which the slowest disks write.
  private static let slowestWriting = Double(16 << 20)
  /// The most bytes that one call writes (write(2)): it moves the times only when it begins.
  private static let longestWriting = UInt64(2 << 30)

  /// Whether an entry had stood still long enough when it was read: its times are older than the
  /// start of the run by two seconds, and a file's content was not changed in the minute before, or in
  /// the longer time that one call may take to write all of it.
  ///
  /// - Parameters:
  ///   - status: of after the reading.
  ///   - time: when it was read, by the file system's clock.
  ///   - hadNoWriter: whether nobody could write to a file when its reading began: then no store
  ///     through a mapping and no long call leaves its times as they are.
  public static func isStable(
    _ status: FileStatus, readAt time: Timestamp, in run: RunClock, hadNoWriter: Bool = false
  ) -> Bool {
    guard hasStoodStill(max(status.modified, status.changed), before: run) else { return false }
    if status.kind != .file || (hadNoWriter && run.times == .exact) { return true }
    let writing = Double(min(status.size, longestWriting)) / slowestWriting
    return run.times != .loose && time.since(status.modified) >= max(run.mappingDelay, writing)
  }

  /// Whether a run began so long after a change that a second one in it has another time.
  static func hasStoodStill(_ changed: Timestamp, before run: RunClock) -> Bool {
    run.start.since(changed) > run.margin
  }

  /// Whether an entry is what it was when it was read.
  public static func isUnchanged(_ known: KnownEntry, _ status: FileStatus) -> Bool {
    known.isStable && known.inode == status.identity.inode && known.kind == status.kind
      && (known.size == status.size || status.kind == .directory)
      && known.modified == status.modified && known.changed == status.changed
  }

  /// Whether a file looks like the copy that a refresh made of another one, of which the content is
  /// known: the original is what it was when it was read; the copy is as the original is, and was
  /// not changed since the app can have changed it (docs/decisions/0007-copied-revisions.md).
  ///
  /// - Parameters:
  ///   - known: what is known of the original.
  ///   - start: since when the revision of the copy is in use.
  static func looksCopied(
    _ copy: FileStatus, from original: FileStatus, _ known: KnownEntry, inUseSince start: Timestamp
  ) -> Bool {
    copy.kind == .file && copy.links == 1 && isUnchanged(known, original)
      && copy.identity.device == original.identity.device && copy.size == original.size
      && copy.modified == original.modified && copy.permissions == original.permissions
      && copy.user == original.user && copy.group == original.group && copy.changed < start
  }

  /// Whether a copy was begun when the original was as it is, and stayed so: it came into being after
  /// the original was changed last. Where the file system tells no time of birth it may not be so.
  static func wasBegun(_ copy: FileStatus, after original: FileStatus) -> Bool {
    copy.born.map { original.changed < $0 } ?? false
  }

  /// How far what a container's record says of contents may be relied on.
  ///
  /// - Parameters:
  ///   - isHeld: whether the record's snapshot was in the listing taken after the lease.
  ///   - canRelyOnLists: whether no condemned object was listed.
  ///   - arePacksThere: whether each pack is there that was when the record was written.
  public static func trust(
    snapshotIsHeld isHeld: Bool, canRelyOnLists: Bool, arePacksThere: Bool
  ) -> ContentTrust {
    isHeld && canRelyOnLists && arePacksThere ? .asListed : .afterLookup
  }

  /// Whether all that an entry needs is in the repository, by looking up each blob.
  ///
  /// - Parameters:
  ///   - contains: whether a blob is stored and may be relied on.
  ///   - list: the pieces of a list blob by its hash, level and bytes of the file; nothing when it
  ///     cannot be read.
  public static func isStored(
    _ entry: TreeEntry, contains: (BlobID) -> Bool,
    list: (Digest, UInt8, UInt64) -> [Piece]?
  ) -> Bool {
    for attribute in entry.attributes {
      guard case .blob(let digest, _) = attribute.value else { continue }
      if !contains(BlobID(kind: .data, digest: digest)) { return false }
    }
    switch entry.node {
    case .file(let content):
      return isStored(content.pieces, level: content.level, contains, list)
    case .directory: return false
    case .symlink, .fifo, .socket, .characterDevice, .blockDevice: return true
    }
  }

  private static func isStored(
    _ pieces: [Piece], level: UInt8, _ contains: (BlobID) -> Bool,
    _ list: (Digest, UInt8, UInt64) -> [Piece]?
  ) -> Bool {
    for case .blob(let digest, let length) in pieces {
      guard contains(BlobID(kind: level == 0 ? .data : .list, digest: digest)) else { return false }
      if level == 0 { continue }
      guard let inner = list(digest, level - 1, length),
        isStored(inner, level: level - 1, contains, list)
      else { return false }
    }
    return true
  }
}

/// How far a record of contents may be relied on.
public enum ContentTrust: Sendable, Hashable {
  /// As it stands, a directory's tree included.
  case asListed
  /// Entry by entry, when each blob is found; a directory's tree is made anew of its entries.
  case afterLookup
}

/// When a run began, by the clock of the file system that it reads, and what the times of files are
/// worth there.
public struct RunClock: Sendable, Hashable {
  public let start: Timestamp
  let times: VolumeTimes
  /// How long, in seconds, a store through a mapping may leave the time of change as it was.
  let mappingDelay: Double

  /// Makes a clock.
  public init(
    start: Timestamp, times: VolumeTimes = .exact, mappingDelay: Double = Host.writebackDelay
  ) {
    (self.start, self.times, self.mappingDelay) = (start, times, mappingDelay)
  }

  /// How much older, in seconds, than the start a change must be: ten minutes where the clock is
  /// another machine's.
  var margin: Double { times == .remote ? 600 : ChangeRules.margin }

  /// The same clock, with a start no later than a moment: what a scan saw before counts as read then.
  func starting(noLaterThan moment: Timestamp) -> RunClock {
    RunClock(start: min(start, moment), times: times, mappingDelay: mappingDelay)
  }

  /// The same moment for what a scan of a container found, where times are the worst of its volumes.
  func reading(_ scan: ContainerScan) -> RunClock {
    let root = scan.container.absolutePath
    let paths = [root] + scan.crossedMounts.map(root.appending)
    return reading(paths.map { (try? Directory.open(path: $0).volumeTimes()) ?? .loose })
  }

  /// The same moment for what lies on volumes of these times.
  public func reading(_ volumes: [VolumeTimes]) -> RunClock {
    let worst = [VolumeTimes.loose, .remote].first { volumes.contains($0) } ?? .exact
    return RunClock(start: start, times: worst, mappingDelay: mappingDelay)
  }
}
