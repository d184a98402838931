internal import ArchiveStore
internal import PolicyEngine
internal import SystemIO

/// The files that a backup left out one by one, of which the snapshot says only in which container
/// and how many there were: what it lacks may be one of them.
///
/// Those that a rule of the policy left out are none of them where the policy is asked what it says
/// of the files that are there, as in a restore into a device: then there remain those of
/// `--exclude` and its like, and of rules that the policy has no more. Directories are none of them, as
/// each that is left out has its name in the snapshot.
struct UnlistedExclusions: Sendable {
  /// How many there were in each container that has some.
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

  /// Whether a rule is a pattern of a command line, `exclude-1`: another run's first one is another.
  private static func isOfCommandLine(_ rule: String) -> Bool {
    let name = rule.prefix { !$0.isNumber }
    return ["exclude-", "include-", "exclude-larger-than-"].contains(name)
  }

  /// Why the file at a logical path may be one of them, where it may.
  func reasonToSpare(_ path: ByteString) -> String? {
    guard let count = path.andParents.lazy.compactMap({ counts[$0] }).first else { return nil }
    let which = count == 1 ? "the file" : "one of the \(count) files"
    return "it may be \(which) that the backup left out; '--delete-excluded' removes it"
  }
}

/// The paths of a snapshot that what it lacks may have been at: what a restore with `--delete` does
/// not remove.
struct SparedPaths: Sendable {
  private let excluded: PathSet
  private let unreadable: PathSet
  private let mounts: PathSet

  /// - Parameter deletesExcluded: whether what was excluded from the backup is not spared.
  init(_ snapshot: Snapshot, deletesExcluded: Bool = false) {
    let named = deletesExcluded ? [] : snapshot.excluded
    let containers = snapshot.containerPaths
    excluded = PathSet(named.lazy.filter { $0.namesDirectory(in: containers) }.map(\.path))
    unreadable = PathSet(snapshot.unreadable.lazy.map(\.path))
    mounts = PathSet(snapshot.mounts)
  }

  /// Why what is at a logical path may be missing in the snapshot though it was there; nil if the
  /// snapshot says that it was not.
  func reasonToSpare(_ path: ByteString) -> String? {
    if excluded.isAbout(path) { return "it was left out of the backup" }
    if unreadable.isAbout(path) { return "it could not be read by the backup" }
    return mounts.isAbout(path) ? "a volume was mounted there" : nil
  }
}

extension Snapshot {
  fileprivate var containerPaths: Set<ByteString> { Set(device.containers.map(\.path)) }
}

extension Exclusion {
  /// Files that were left out one by one are counted at their container, without their names. Where
  /// too many directories were, any in the path may be one of them.
  fileprivate func namesDirectory(in containers: Set<ByteString>) -> Bool {
    rule == Self.unnamed || !containers.contains(path)
  }
}
