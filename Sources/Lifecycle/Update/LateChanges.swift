internal import SandboxModel
internal import SystemIO

/// What is in something that went and was not there, or was another thing, when the plan was made: an
/// app or a helper of it wrote it in between. It is compared once it lies in the trash, where nobody
/// writes any more.
struct LateChanges: WalkVisitor {
  private let known: [ByteString: FileStatus]
  private var found: [PathRemark] = []
  private let logical: ByteString

  /// Looks at what was kept of an entry of a scan and all below it.
  ///
  /// - Parameter path: where it lies now.
  static func find(
    _ scan: ContainerScan, below entry: Int, at path: ByteString
  ) -> [PathRemark] {
    let logical = scan.logicalPath(entry)
    guard let directory = try? Directory.open(resolved: path) else { return [] }
    var visitor = LateChanges(scan, entry, logical)
    var walk = Walk(directory)
    walk.run(&visitor, state: ByteString(""))
    return visitor.found.sorted { $0.path < $1.path }
  }

  /// Looks at what gave way in a container to what came back.
  ///
  /// - Parameter replaced: paths in the container, and where what gave way at each lies now, if anything did.
  static func find(
    _ scan: ContainerScan, replaced: [(inner: ByteString, path: ByteString)]
  ) -> [PathRemark] {
    let lookup = EntryLookup(scan)
    return replaced.flatMap { inner, path in find(scan, lookup.index(of: inner), inner, at: path) }
  }

  private static func find(
    _ scan: ContainerScan, _ entry: Int?, _ inner: ByteString, at path: ByteString
  ) -> [PathRemark] {
    let logical = scan.container.logicalPrefix.appending(inner)
    guard let name = path.lastComponent,
      let now = (try? Directory.open(resolved: path.parent).statusIfPresent(name)) ?? nil
    else { return [] }
    guard let entry else { return [PathRemark(path: logical, remark: "it came after the plan")] }
    if now.kind == .directory { return find(scan, below: entry, at: path) }
    return isWritten(now, since: scan.entries[entry].status)
      ? [PathRemark(path: logical, remark: "it was written after the plan")] : []
  }

  private static func isWritten(_ now: FileStatus, since before: FileStatus) -> Bool {
    now.kind == .file && (before.size != now.size || before.modified != now.modified)
  }

  private init(_ scan: ContainerScan, _ entry: Int, _ logical: ByteString) {
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
        found.append(PathRemark(path: logical.appending(path), remark: "it came after the plan"))
        continue
      }
      if Self.isWritten(entry.status, since: before) {
        found.append(
          PathRemark(path: logical.appending(path), remark: "it was written after the plan"))
      }
    }
  }

  mutating func failed(_ problem: WalkProblem, state: ByteString) {
    found.append(
      PathRemark(path: logical.appending(problem.path), remark: problem.error.reason))
  }
}
