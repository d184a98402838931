internal import DeviceScan
internal import SandboxModel
internal import SystemIO

/// Changes to removed entries that were made after the plan, by the app or one of its helpers. The
/// entries are compared once they are in the trash, where no process writes to them.
struct LateChanges: WalkVisitor {
  private let known: [ByteString: FileStatus]
  private var found: [PathRemark] = []
  private let logical: ByteString

  /// Returns the late changes to a removed entry of a scan and everything below it.
  ///
  /// - Parameter path: its current path.
  static func find(
    _ scan: ContainerScan, below entry: Int, at path: ByteString
  ) -> [PathRemark] {
    let logical = scan.logicalPath(entry)
    guard let directory = try? Directory.open(resolved: path) else { return [] }
    var visitor = LateChanges(scan, below: entry, logical: logical)
    var walk = Walk(directory)
    walk.run(&visitor, state: ByteString(""))
    return visitor.found.sorted { $0.path < $1.path }
  }

  /// Returns the late changes to entries of a container that were replaced by restored ones.
  ///
  /// - Parameter replaced: the paths in the container, each with the path at which the replaced
  ///   entry is kept if there was one.
  static func find(
    _ scan: ContainerScan, replaced: [(inner: ByteString, path: ByteString)]
  ) -> [PathRemark] {
    let lookup = EntryLookup(scan)
    return replaced.flatMap { inner, path in
      find(scan, entry: lookup.index(of: inner), inner: inner, at: path)
    }
  }

  private static func find(
    _ scan: ContainerScan, entry: Int?, inner: ByteString, at path: ByteString
  ) -> [PathRemark] {
    let logical = scan.container.logicalPrefix.appending(inner)
    guard let name = path.lastComponent,
      let now = (try? Directory.open(resolved: path.parent).statusIfPresent(name)) ?? nil
    else { return [] }
    guard let entry else {
      return [PathRemark(path: logical, remark: "it was created after the plan was made")]
    }
    if now.kind == .directory { return find(scan, below: entry, at: path) }
    return isWritten(now, since: scan.entries[entry].status)
      ? [PathRemark(path: logical, remark: "it was modified after the plan was made")] : []
  }

  private static func isWritten(_ now: FileStatus, since before: FileStatus) -> Bool {
    now.kind == .file && (before.size != now.size || before.modified != now.modified)
  }

  private init(_ scan: ContainerScan, below entry: Int, logical: ByteString) {
    self.logical = logical
    var known: [ByteString: FileStatus] = [:]
    var open: [(entry: Int, path: ByteString)] = [(entry, "")]
    while let next = open.popLast() {
      known[next.path] = scan.entries[next.entry].status
      for child in scan.entries[next.entry].children {
        open.append((child, next.path.appending(scan.name(child))))
      }
    }
    self.known = known
  }

  mutating func visit(
    _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: ByteString,
    descent: inout WalkDescent<ByteString>
  ) {
    for (index, entry) in batch.entries.enumerated() {
      let path = state.appending(batch.name(entry))
      if entry.status.kind == .directory { descent.enter(index, with: path) }
      guard let before = known[path] else {
        found.append(
          PathRemark(
            path: logical.appending(path), remark: "it was created after the plan was made"))
        continue
      }
      if Self.isWritten(entry.status, since: before) {
        found.append(
          PathRemark(
            path: logical.appending(path), remark: "it was modified after the plan was made"))
      }
    }
  }

  mutating func failed(_ problem: WalkProblem, state: ByteString) {
    found.append(
      PathRemark(path: logical.appending(problem.path), remark: problem.error.reason))
  }
}
