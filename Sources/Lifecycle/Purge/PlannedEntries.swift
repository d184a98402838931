internal import SandboxModel
internal import SystemIO

/// What a scan saw of a container's entries, against which each is held right before it goes: the same
/// inode, with the same times, has the same class and the same age.
struct PlannedEntries {
  let scan: ContainerScan
  /// Files whose names were taken away here while they have others: their status has changed by it.
  var unlinked: Set<FileIdentity> = []

  init(scan: ContainerScan) { self.scan = scan }

  /// In what an entry is not as it was planned; nil when it is.
  func difference(_ index: Int, _ status: FileStatus, _ accessed: Int64) -> String? {
    let planned = scan.entries[index].status
    guard status.identity == planned.identity, status.kind == planned.kind else {
      return "another thing stands in its place"
    }
    let isOwnChange = planned.links > 1 && unlinked.contains(planned.identity)
    guard status.modified == planned.modified, isOwnChange || status.changed == planned.changed
    else { return "it was changed meanwhile" }
    if let before = scan.accessTimes[index], status.kind == .file, accessed > before {
      return "it was read meanwhile"
    }
    return nil
  }
}

/// Holds a directory that was moved aside against the plan: everything in it must be what was planned.
struct DirectoryCheck: WalkVisitor {
  private let planned: PlannedEntries
  private let lookup: EntryLookup
  /// What is not as planned, and in what.
  private(set) var difference: String?
  /// Bytes that the volume gives back for all of it.
  private(set) var bytes: UInt64 = 0
  private var links: [FileIdentity: UInt32] = [:]
  var isDone: Bool { difference != nil }

  private init(_ planned: PlannedEntries) {
    self.planned = planned
    lookup = EntryLookup(planned.scan)
  }

  /// Looks at all that is in a directory, which is an entry of the plan's.
  static func run(
    _ planned: PlannedEntries, _ entry: Int, _ directory: consuming Directory
  ) throws(SystemError) -> DirectoryCheck {
    var check = DirectoryCheck(planned)
    let status = try directory.status()
    guard status.identity == planned.scan.entries[entry].status.identity else {
      check.difference = "another thing stands in its place"
      return check
    }
    check.bytes = status.allocated
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
      guard let child = lookup.child(named: name, of: state), !entry.status.isMountPoint else {
        difference = "'\(directory.relativePath.appending(name))' has come into it"
        return
      }
      let isDirectory = entry.status.kind == .directory
      // A directory is compared by what is in it.
      if let found = isDirectory && entry.status.identity == scan.entries[child].status.identity
        ? nil : planned.difference(child, entry.status, entry.accessed)
      {
        difference = "'\(directory.relativePath.appending(name))': \(found)"
        return
      }
      if isDirectory { descent.enter(number, with: child) }
      add(entry.status)
    }
  }

  private mutating func add(_ status: FileStatus) {
    if status.kind != .directory, status.links > 1 {
      links[status.identity, default: 0] += 1
      if links[status.identity] != status.links { return }
    }
    bytes += status.allocated
  }

  mutating func failed(_ problem: WalkProblem, state: Int) {
    difference = "'\(problem.path)' cannot be looked at: \(problem.error.reason)"
  }
}
