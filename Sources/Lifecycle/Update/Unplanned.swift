internal import SystemIO

/// What is in something that went and was not there, or was another thing, when the plan was made: an
/// app or a helper of it wrote it in between. It is compared once it lies in the trash, where nobody
/// writes any more.
struct Unplanned: WalkVisitor {
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
    guard let folder = try? Folder.open(path: path) else { return [] }
    var visitor = Unplanned(scan, entry, logical)
    var walk = Walk(folder)
    walk.run(&visitor, state: ByteString(""))
    return visitor.found.sorted { $0.path < $1.path }
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
    _ batch: borrowing WalkBatch, of folder: borrowing WalkFolder, state: ByteString,
    descent: inout WalkDescent<ByteString>
  ) {
    for (index, entry) in batch.entries.enumerated() {
      let path = state.appending(batch.name(entry))
      if entry.status.kind == .directory { descent.enter(index, with: path) }
      guard let before = known[path] else {
        found.append(PathRemark(path: logical.appending(path), remark: "it came after the plan"))
        continue
      }
      if entry.status.kind == .file,
        before.size != entry.status.size || before.modified != entry.status.modified
      {
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
