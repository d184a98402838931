internal import PolicyEngine
internal import SystemIO

/// Whether what is to be stored finds room in the repository (docs/design.md, "Backup and restore").
struct SpaceCheck {
  /// What is to be read, in all and by the app, group or directory and its data class.
  private(set) var totals = EntryTotals()
  private var owners: [ByteString: UInt64] = [:]
  private var classes: [DataClass: UInt64] = [:]

  /// Adds up what must be read. A database of several names is read by each and stored once.
  ///
  /// - Parameter resumed: bytes of a large file that an interrupted run has stored already.
  init(
    _ trees: [SelectedTree], _ known: [UnchangedEntries], _ links: HardLinks,
    resumed: (SelectedTree, UnchangedEntries, Int) -> UInt64
  ) {
    var seen = Set<FileIdentity>()
    for (tree, known) in zip(trees, known) where !tree.isEmpty && !known.isWhole(0) {
      // The sum of an owner at once: a look into a table for each of a million files would show.
      var bytes: UInt64 = 0
      for (index, entry) in tree.scan.entries.enumerated()
      where entry.status.kind == .file && entry.fate != .excluded && !known.isKnown(index)
        && known.renamedLinks[Int32(index)] == nil && known.copies[Int32(index)] == nil
        && !links.isFollower(tree.id(index))
      {
        totals.add(entry.status)
        if !seen.isFirst(entry.status) { continue }
        var stored = Self.stored(entry.status)
        if entry.status.size >= LargeFile.least {
          stored -= min(stored, resumed(tree, known, index))
        }
        bytes += stored
        classes[entry.verdicts.keep.dataClass, default: 0] += stored
      }
      owners[tree.scan.container.ownerPath, default: 0] += bytes
    }
  }

  /// What a snapshot of a scan stores at most: all that a first one would. What of it a repository has
  /// already is known only to who opens that.
  static func bound(of scan: DeviceScan) -> EntryTotals {
    var (bound, seen) = (EntryTotals(), Set<FileIdentity>())
    for container in scan.containers where container.entries.first?.fate != .excluded {
      for entry in container.entries where entry.status.kind == .file && entry.fate != .excluded {
        if !seen.isFirst(entry.status) { continue }
        bound.files += 1
        bound.bytes.addClamping(stored(entry.status))
      }
    }
    return bound
  }

  /// Bytes of all that is kept, as the totals of a snapshot of it will have them: holes count, and a
  /// file of several names counts once.
  static func contents(of trees: [SelectedTree]) -> UInt64 {
    var (bytes, seen) = (UInt64(0), Set<FileIdentity>())
    for tree in trees {
      for entry in tree.scan.entries
      where entry.status.kind == .file && entry.fate != .excluded && seen.isFirst(entry.status) {
        bytes.addClamping(entry.status.size)
      }
    }
    return bytes
  }

  /// Bytes that a file's content takes at most: holes take no room.
  private static func stored(_ status: FileStatus) -> UInt64 { min(status.size, status.allocated) }

  /// Bytes that are to be stored if nothing of them is there and nothing compresses; holes take no
  /// room.
  var bytes: UInt64 { owners.values.reduce(0, +) }

  /// Refuses what does not fit.
  ///
  /// - Parameters:
  ///   - growth: by how many bytes what is kept is more than the last snapshot holds, where nothing
  ///     else tells what of it is there already.
  ///   - afterwards: bytes that are to be written on the same volume after the backup.
  func require(
    _ space: VolumeSpace, keepFree: UInt64?, growth: UInt64?, afterwards: UInt64, place: String
  ) throws(LifecycleError) {
    let reserve = keepFree ?? min(space.total / 20, 10 << 30)
    let needed = min(bytes, growth ?? bytes)
    let taken = reserve + afterwards
    let usable = space.available > taken ? space.available - taken : 0
    guard needed > usable else { return }
    let next =
      afterwards > 0 ? ", and \(Self.text(afterwards)) are to be written there afterwards" : ""
    throw LifecycleError(
      .failed,
      "cannot back up to '\(place)': up to \(Self.text(needed)) are new, and "
        + "\(Self.text(space.available)) are free there, of which \(Self.text(reserve)) are kept "
        + "free\(next). Largest: \(largest)",
      hint: "free space there, leave something out with '--exclude', choose how much stays free "
        + "with '--keep-free', or skip this check with '--no-space-check'")
  }

  /// The largest apps and classes.
  private var largest: String {
    let owners = owners.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(3)
      .map { "\($0.key) \(Self.text($0.value))" }
    let classes = classes.sorted { ($1.value, $0.key.rawValue) < ($0.value, $1.key.rawValue) }
      .prefix(3).map { "\($0.key.rawValue) \(Self.text($0.value))" }
    return owners.joined(separator: ", ") + "; " + classes.joined(separator: ", ")
  }

  private static func text(_ bytes: UInt64) -> String { ByteCount.text(bytes) }
}

extension Set<FileIdentity> {
  /// Whether no earlier name of a file was asked about.
  fileprivate mutating func isFirst(_ status: FileStatus) -> Bool {
    status.links <= 1 || insert(status.identity).inserted
  }
}
