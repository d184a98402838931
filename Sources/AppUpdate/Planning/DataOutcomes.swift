internal import DatabaseCapture
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The planned outcome of a path.
package enum DataOutcome: String, CaseIterable, Sendable, Hashable {
  /// It stays with the app, as the platform guarantees.
  case carried
  /// It stays with the app here, but the platform does not guarantee it.
  case atRisk = "at-risk"
  /// It moves to the trash.
  case dropped
  /// A new entry replaces it.
  case replaced
  /// It is restored from a snapshot to a path with no entry.
  case restored
}

/// The planned outcome of each entry of a container whose data an app keeps, according to the
/// policy's `update`. Data that cannot be recreated is never removed because of `discard`.
///
/// A directory with an entry that stays, stays; so does a directory that cannot be read, and a
/// mount point. A database and its log are treated as one.
struct DataOutcomes {
  private let scan: ContainerScan
  private var outcomes: [DataOutcome]

  /// Determines the outcomes according to the policy.
  ///
  /// - Parameters:
  ///   - isStrict: whether data that may vanish is removed.
  ///   - replaced: the names at the container's root that are rewritten.
  init(_ scan: ContainerScan, isStrict: Bool, replaced: [ByteString] = []) {
    self.scan = scan
    outcomes = scan.entries.map { Self.outcome($0, isStrict: isStrict) }
    for index in scan.entries.first?.children ?? 0..<0
    where replaced.contains(scan.name(index)) && scan.entries[index].status.kind == .file {
      outcomes[index] = .replaced
    }
    for index in scan.ownDirectories { outcomes[index] = .carried }
    keepDatabasesWhole()
    keepDirectories()
  }

  /// Keeps all entries.
  init(keeping scan: ContainerScan) {
    self.scan = scan
    outcomes = [DataOutcome](repeating: .carried, count: scan.entries.count)
  }

  /// Gives all entries the same outcome, such as removed or replaced.
  init(_ scan: ContainerScan, all outcome: DataOutcome) {
    self.scan = scan
    outcomes = [DataOutcome](repeating: outcome, count: scan.entries.count)
  }

  /// Keeps all entries except those that are replaced or removed, by their paths in the container.
  init(
    keeping scan: ContainerScan, replacing replaced: Set<ByteString>,
    dropping dropped: Set<ByteString>
  ) {
    self.init(keeping: scan)
    for index in scan.entries.indices where index > 0 {
      let path = scan.path(index)
      if dropped.contains(path) || outcomes[Int(scan.entries[index].parent)] == .dropped {
        outcomes[index] = .dropped
      } else if replaced.contains(path), scan.entries[index].status.kind != .directory {
        outcomes[index] = .replaced
      }
    }
  }

  private static func outcome(_ entry: ScannedEntry, isStrict: Bool) -> DataOutcome {
    // Its content is unknown.
    if entry.isUnreadable || entry.isStale || entry.status.isMountPoint { return .atRisk }
    let verdict = entry.verdicts.keep
    switch verdict.update {
    case .preserve, .replace: return .carried
    case .mayVanish: return isStrict ? .dropped : .atRisk
    case .discard: return verdict.dataClass.isPrecious ? .atRisk : .dropped
    }
  }

  /// Gives a database and its log the same outcome: if one stays, both stay.
  private mutating func keepDatabasesWhole() {
    guard outcomes.contains(.dropped) else { return }
    let lookup = EntryLookup(scan)
    for (index, entry) in scan.entries.enumerated() where entry.status.kind == .file && index > 0 {
      let name = scan.name(index)
      for suffix in Self.suffixes where name.bytes.suffix(suffix.count).elementsEqual(suffix) {
        let base = ByteString(name.bytes.dropLast(suffix.count))
        guard let database = lookup.child(named: base, of: Int(entry.parent)) else { continue }
        if (outcomes[index] == .dropped) != (outcomes[database] == .dropped) {
          outcomes[outcomes[index] == .dropped ? index : database] = .atRisk
        }
      }
    }
  }

  private static let suffixes = [DatabaseMember.log, .journal].map(\.suffix)

  /// Keeps each directory with an entry that stays.
  private mutating func keepDirectories() {
    for index in scan.entries.indices.reversed() where index > 0 && outcomes[index] != .dropped {
      let parent = Int(scan.entries[index].parent)
      if outcomes[parent] == .dropped { outcomes[parent] = .atRisk }
    }
    if !outcomes.isEmpty { outcomes[0] = .carried }
  }

  /// The topmost removed entries.
  var drops: [PlannedContainer.Drop] {
    scan.entries.indices.compactMap { index in
      guard index > 0, outcomes[index] == .dropped else { return nil }
      let entry = scan.entries[index]
      guard outcomes[Int(entry.parent)] != .dropped else { return nil }
      return PlannedContainer.Drop(
        entry: index, inner: scan.path(index),
        leavesEmptyDirectory: entry.status.kind == .directory
          && entry.verdicts.keep.restore == .recreateEmpty)
    }.sorted { $0.inner < $1.inner }
  }

  /// The topmost paths of one outcome and class in byte order, with the totals below them.
  var paths: [PlannedContainer.Path] {
    var found: [PlannedContainer.Path] = []
    // The index in `found` at which an entry is counted.
    var counted = [Int](repeating: 0, count: scan.entries.count)
    for (index, entry) in scan.entries.enumerated() {
      let dataClass = entry.verdicts.keep.dataClass
      if entry.parent != 0 || scan.ownDirectories.contains(index) {
        let above = counted[Int(entry.parent)]
        if scan.ownDirectories.contains(index)
          || found[above].outcome == outcomes[index] && found[above].dataClass == dataClass
        {
          counted[index] = above
          if !scan.ownDirectories.contains(index) { found[above].totals.add(entry.status) }
          continue
        }
      }
      counted[index] = found.count
      found.append(
        PlannedContainer.Path(
          path: scan.logicalPath(index), outcome: outcomes[index], dataClass: dataClass))
      found[counted[index]].totals.add(entry.status)
    }
    // The container itself is not data of the app.
    if let first = found.first, first.path == scan.container.logicalPrefix, first.totals.files == 0
    {
      found.removeFirst()
    }
    return found.sorted { $0.path < $1.path }
  }
}
