internal import ArchiveStore
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Checks whether the data to store fits in the repository (docs/design.md, "Backup and restore").
///
/// Of a file that changed since it was stored only the growth is certain to be new: its other bytes
/// may all be stored already, as those of most pages of a large database.
struct SpaceCheck {
  /// The entries to read.
  private(set) var totals = EntryTotals()
  /// The number of bytes to read, without holes.
  private var read: UInt64 = 0
  /// The new bytes by app, group or directory, and by data class.
  private var owners: [ByteString: UInt64] = [:]
  private var classes: [DataClass: UInt64] = [:]

  /// Adds up the entries to read. A hard-linked database is read under each name and stored once.
  ///
  /// - Parameter resumed: the number of bytes of a large file that an interrupted run has already
  ///   stored.
  init(
    _ trees: [SelectedTree], known: [UnchangedEntries], links: HardLinks,
    resumed: (SelectedTree, UnchangedEntries, Int) -> UInt64
  ) {
    var seen = Set<FileIdentity>()
    for (tree, known) in zip(trees, known) where !tree.isEmpty && !known.isWhole(0) {
      // Summed up for an owner at once: a table lookup for each of a million files would be
      // measurable.
      var bytes: UInt64 = 0
      for (index, entry) in tree.scan.entries.enumerated()
      where entry.status.kind == .file && entry.selection != .excluded && !known.isKnown(index)
        && known.renamedLinks[Int32(index)] == nil && known.copies[Int32(index)] == nil
        && !links.isFollower(tree.id(index))
      {
        totals.add(entry.status)
        if !seen.isFirst(entry.status) { continue }
        var stored = entry.status.storedBytes
        if entry.status.size >= BackupWorker.LargeFile.minimumSize {
          stored -= min(stored, resumed(tree, known, index))
        }
        read += stored
        let new = known.newBytes(of: index, size: stored)
        bytes += new
        classes[entry.verdicts.keep.dataClass, default: 0] += new
      }
      owners[tree.scan.container.logicalPrefix.subject, default: 0] += bytes
    }
  }

  /// Returns the bytes of all included files, as the totals of their snapshot count them: including
  /// holes, and a hard-linked file once.
  static func contents(of trees: [SelectedTree]) -> UInt64 {
    var (bytes, seen) = (UInt64(0), Set<FileIdentity>())
    for tree in trees {
      for entry in tree.scan.entries
      where entry.status.kind == .file && entry.selection != .excluded && seen.isFirst(entry.status)
      {
        bytes.addClamping(entry.status.size)
      }
    }
    return bytes
  }

  /// The number of bytes to store if no new file equals a stored one and nothing compresses.
  private var new: UInt64 { owners.values.reduce(0, +) }

  /// Throws if the new data does not fit. Returns a warning if it fits, but the changed files do
  /// not if all of their content is new; otherwise nil.
  ///
  /// - Parameters:
  ///   - growth: the number of bytes by which the included files exceed those in the last snapshot,
  ///     if nothing else shows how much is already stored.
  ///   - afterwards: the number of bytes to be written to the same volume after the backup.
  func require(
    _ space: VolumeSpace, keepFree: UInt64?, growth: UInt64?, afterwards: UInt64, location: String
  ) throws(OperationError) -> String? {
    let reserve = keepFree ?? min(space.total / 20, 10 << 30)
    let needed = min(new, growth ?? new)
    let required = reserve + afterwards
    let usable = space.available > required ? space.available - required : 0
    guard needed > usable else {
      guard growth == nil, read > usable else { return nil }
      return "'\(location)' may become full: \(Self.text(needed)) are new, and files with "
        + "\(Self.text(read - needed)) of earlier content changed, while "
        + "\(Self.text(space.available)) are free, of which \(Self.text(reserve)) must stay free"
    }
    let next = afterwards > 0 ? ", and \(Self.text(afterwards)) are needed after the backup" : ""
    throw OperationError(
      .failed, code: .noSpace,
      "back up to", subject: location,
      reason: "not enough space: up to \(Self.text(needed)) must be stored, "
        + "\(Self.text(space.available)) are free, of which \(Self.text(reserve)) must stay "
        + "free\(next). Largest: \(largest)",
      hint: "free space on that volume, exclude files with '--exclude', choose how much stays free "
        + "with '--keep-free', or skip this check with '--no-space-check'")
  }

  /// The largest apps, groups or directories, and the largest data classes.
  private var largest: String {
    let owners = owners.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(3)
      .map { "\($0.key) \(Self.text($0.value))" }
    let classes = classes.sorted { ($1.value, $0.key.rawValue) < ($0.value, $1.key.rawValue) }
      .prefix(3).map { "\($0.key.rawValue) \(Self.text($0.value))" }
    return owners.joined(separator: ", ") + "; " + classes.joined(separator: ", ")
  }

  private static func text(_ bytes: UInt64) -> String { ByteCount.text(bytes) }
}
