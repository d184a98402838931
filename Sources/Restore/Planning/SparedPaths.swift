internal import ArchiveStore
internal import PolicyEngine
internal import SystemIO

/// The files that a backup excluded individually. The snapshot records only their container and
/// their number, so a file that it does not have may be one of them.
///
/// A restore into a device applies the policy to the existing files, so it recognizes those that a
/// rule excludes. The remaining ones were excluded by options such as `--exclude`, or by rules that
/// are no longer in the policy. Directories are never among them, because the snapshot records the
/// name of each excluded one.
struct UnlistedExclusions: Sendable {
  /// The number of such files by container.
  private let counts: [ByteString: UInt64]

  init(_ plan: RestorePlan) {
    var counts: [ByteString: UInt64] = [:]
    let (snapshot, policy) = (plan.snapshot.snapshot, plan.request.rules?.policy)
    let containers = snapshot.containerPaths
    for left in plan.request.deletesExcluded ? [] : snapshot.excluded
    where !left.namesDirectory(in: containers)
      && (Self.isOfCommandLine(left.rule) || policy?.hasRule(left.rule) != true)
    {
      counts[left.path, default: 0].addClamping(left.files)
    }
    self.counts = counts
  }

  /// Whether a rule is a command-line pattern such as `exclude-1`, whose number means another
  /// pattern in another run.
  private static func isOfCommandLine(_ rule: String) -> Bool {
    let name = rule.prefix { !$0.isNumber }
    return ["exclude-", "include-", "exclude-larger-than-"].contains(name)
  }

  /// Returns the reason why the file at a logical path may be one of them; nil if it cannot be.
  func reasonToSpare(_ path: ByteString) -> String? {
    guard let count = path.andParents.lazy.compactMap({ counts[$0] }).first else { return nil }
    let which = count == 1 ? "the file" : "one of the \(count) files"
    return "it may be \(which) that the backup excluded; '--delete-excluded' removes it"
  }
}

/// The paths whose entries a backup may have omitted; a restore with `--delete` keeps them.
struct SparedPaths: Sendable {
  /// A set of paths that finds in O(log n) whether a member is at, above or below a path.
  struct PathSet: Sendable {
    private let paths: Set<ByteString>
    private let sorted: [ByteString]

    init(_ paths: some Sequence<ByteString>) {
      self.paths = Set(paths)
      sorted = self.paths.sorted()
    }

    /// Whether a member is the path itself or a directory above it.
    func covers(_ path: ByteString) -> Bool {
      !paths.isEmpty && path.andParents.contains { paths.contains($0) }
    }

    /// Whether a member is the path itself, above it or below it.
    func isAbout(_ path: ByteString) -> Bool { covers(path) || holdsBelow(path) }

    /// Whether a member is below the path; such members are adjacent in byte order.
    private func holdsBelow(_ path: ByteString) -> Bool {
      if path.isEmpty { return !sorted.isEmpty }
      let start = ByteString(Array(path.bytes) + [UInt8(ascii: "/")])
      var (low, high) = (0, sorted.count)
      while low < high {
        let middle = (low + high) / 2
        if sorted[middle] < start { low = middle + 1 } else { high = middle }
      }
      return low < sorted.count && sorted[low].bytes.starts(with: start.bytes)
    }
  }

  private let excluded: PathSet
  private let unreadable: PathSet
  private let mounts: PathSet

  /// - Parameter deletesExcluded: whether entries that the backup excluded may be deleted.
  init(_ snapshot: Snapshot, deletesExcluded: Bool = false) {
    let named = deletesExcluded ? [] : snapshot.excluded
    let containers = snapshot.containerPaths
    excluded = PathSet(named.lazy.filter { $0.namesDirectory(in: containers) }.map(\.path))
    unreadable = PathSet(snapshot.unreadable.lazy.map(\.path))
    mounts = PathSet(snapshot.mounts)
  }

  /// Returns the reason why an entry may be missing in the snapshot although it existed; nil if the
  /// snapshot shows that it did not.
  func reasonToSpare(_ path: ByteString) -> String? {
    if excluded.isAbout(path) { return "the backup excluded it" }
    if unreadable.isAbout(path) { return "the backup could not read it" }
    return mounts.isAbout(path) ? "a volume was mounted there" : nil
  }
}

extension Snapshot {
  /// Returns what the snapshot lacks at a path although its policy keeps it, with the reasons.
  func incompleteData(at path: ByteString) -> [PathRemark] {
    unreadable.filter { $0.path.isWithin(path) || path.isWithin($0.path) }
      .map { PathRemark(path: $0.path, remark: $0.note) }
  }

  fileprivate var containerPaths: Set<ByteString> { Set(device.containers.map(\.path)) }
}

extension Exclusion {
  /// Whether the path is that of an excluded directory. Individually excluded files are counted at
  /// their container without their names. If there were too many excluded directories, any
  /// directory in the path may be one of them.
  fileprivate func namesDirectory(in containers: Set<ByteString>) -> Bool {
    rule == Self.unnamed || !containers.contains(path)
  }
}

/// The lost names of a directory, as ordered ranges.
struct UnreadableRanges {
  private var runs: [UnreadableNames] = []

  var isEmpty: Bool { runs.isEmpty }

  mutating func add(_ names: UnreadableNames) {
    let index = index(of: names.last)
    if index < runs.count, runs[index] == names { return }
    runs.insert(names, at: index)
  }

  /// Whether a name may be lost.
  func contains(_ name: ByteString) -> Bool {
    let index = index(of: name)
    return index < runs.count && runs[index].contains(name)
  }

  /// Returns the index of the first range that ends at or after a name.
  private func index(of name: ByteString) -> Int {
    var range = 0..<runs.count
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      range = runs[middle].last < name ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return range.lowerBound
  }
}

extension UnreadableNames {
  /// All names, for a directory that cannot be read at all.
  static let any = UnreadableNames(
    after: nil, last: ByteString([UInt8](repeating: 0xff, count: 255)))

  /// Returns the range of a single name.
  static func one(_ name: ByteString) -> UnreadableNames {
    UnreadableNames(after: ByteString(name.bytes.dropLast()), last: name)
  }
}

extension ByteString {
  /// The path and each directory above it, the nearest first; the last is empty for a relative
  /// path.
  var andParents: [ByteString] {
    var (all, path) = ([self], self)
    while !path.isEmpty, path != "/" {
      path = path.parent
      all.append(path)
    }
    return all
  }
}
