internal import DeviceScan
internal import SandboxModel
internal import SystemIO

/// A container's entries as the scan saw them. Each entry is checked against them right before its
/// deletion: the same inode with the same times has the same class and age.
struct PlannedEntries {
  let scan: ContainerScan
  /// The lookup of entries by name, shared by the checks of all directories of the container.
  private let lookup: EntryLookup
  /// Hard-linked files of which this purge deleted a name, which changes their status.
  var unlinked: Set<FileIdentity> = []

  init(scan: ContainerScan) {
    self.scan = scan
    lookup = EntryLookup(scan)
  }

  /// Returns how an entry differs from the plan, or nil if it does not.
  func difference(of index: Int, status: FileStatus, accessed: Int64) -> String? {
    let planned = scan.entries[index].status
    guard status.identity == planned.identity, status.kind == planned.kind else {
      return "it was replaced"
    }
    let isOwnChange = planned.links > 1 && unlinked.contains(planned.identity)
    guard status.modified == planned.modified, isOwnChange || status.changed == planned.changed
    else { return "it was changed since the plan was made" }
    if let before = scan.accessTimes[index], status.kind == .file, accessed > before {
      return "it was read since the plan was made"
    }
    return nil
  }
}

/// The bytes that a volume gains from deleting entries together: a hard-linked file counts if all
/// its names are among them.
struct FreedBytes {
  private(set) var bytes: UInt64 = 0
  private var links: [FileIdentity: UInt32] = [:]

  mutating func add(_ status: FileStatus) {
    if status.kind != .directory, status.links > 1 {
      links[status.identity, default: 0] += 1
      if links[status.identity] != status.links { return }
    }
    bytes += status.allocated
  }
}

extension PlannedEntries {
  /// A check of a directory that was moved to the staging directory: everything in it must match
  /// the plan.
  struct DirectoryCheck: WalkVisitor {
    private let planned: PlannedEntries
    /// The first difference from the plan, with its path.
    private(set) var difference: String?
    /// The bytes that the volume gains from deleting the directory.
    private(set) var freed = FreedBytes()
    var isDone: Bool { difference != nil }

    private init(_ planned: PlannedEntries) { self.planned = planned }

    /// Checks the content of a directory, which is an entry of the plan.
    static func run(
      against planned: PlannedEntries, entry: Int, directory: consuming Directory
    ) throws(SystemError) -> DirectoryCheck {
      var check = DirectoryCheck(planned)
      let status = try directory.status()
      guard status.identity == planned.scan.entries[entry].status.identity else {
        check.difference = "it was replaced"
        return check
      }
      check.freed.add(status)
      var walk = Walk(directory)
      walk.run(&check, state: entry)
      return check
    }

    mutating func visit(
      _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: Int,
      descent: inout WalkDescent<Int>
    ) {
      let scan = planned.scan
      for number in 0..<batch.entries.count {
        let (entry, name) = (batch.entries[number], batch.name(batch.entries[number]))
        guard let child = planned.lookup.child(named: name, of: state), !entry.status.isMountPoint
        else {
          difference = "'\(directory.relativePath.appending(name))' was added to it"
          return
        }
        let isDirectory = entry.status.kind == .directory
        // A directory is compared by its content.
        if let found = isDirectory && entry.status.identity == scan.entries[child].status.identity
          ? nil : planned.difference(of: child, status: entry.status, accessed: entry.accessed)
        {
          difference = "'\(directory.relativePath.appending(name))': \(found)"
          return
        }
        if isDirectory { descent.enter(number, with: child) }
        freed.add(entry.status)
      }
    }

    mutating func failed(_ problem: WalkProblem, state: Int) {
      difference = "'\(problem.path)' cannot be read: \(problem.error.reason)"
    }
  }
}
