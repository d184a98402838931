internal import ArchiveStore
internal import SystemIO

/// Makes the entries of a stored tree below a folder, by handles, never through a link.
struct TreeWriter: ~Copyable {
  private let reader: RepositoryReader
  private let root: Folder
  private var ladder: FolderLadder
  /// The folders from the root down to the one in hand, whose metadata is set when they are left.
  private var open: [(path: ByteString, entry: TreeEntry)] = []
  /// The first restored name of each group of hard links.
  private var firstNames: [ByteString: ByteString] = [:]
  private var report = RestoreReport()

  init(root: consuming Folder, reader: RepositoryReader) throws(SystemError) {
    self.reader = reader
    self.root = try root.duplicate()
    ladder = FolderLadder(root: root)
  }

  consuming func takeReport() -> RestoreReport { report }

  /// Makes all that is in a tree, each folder before what is in it. What is below a folder whose
  /// tree is damaged is left out; the folder is in the report.
  mutating func write(_ tree: TreeReference) throws {
    try reader.walkPastDamage(tree) { path, finding in
      switch finding {
      case .entry(let entry):
        try leave(to: path.components.count - 1)
        return try make(entry, named: entry.name, at: path) ? .enter : .skip
      case .damage(let error):
        report.damaged.append(
          PathRemark(path: path.isEmpty ? "." : path, remark: error.reason))
        return .skip
      }
    }
    try leave(to: 0)
  }

  /// Makes one entry in the folder in hand, a folder without what is in it; false when it could not
  /// be made, which is then in the report. Throws only what ends the whole restore.
  @discardableResult
  mutating func make(_ entry: TreeEntry, named name: ByteString, at path: ByteString) throws -> Bool
  {
    do {
      try create(entry, named: name, at: path)
      report.restored.count(entry)
      return true
    } catch let error as SystemError {
      if error.endsEverything { throw LifecycleError(error) }
      report.failed.append(PathRemark(path: path, remark: error.reason))
    } catch let error as StoreError where error.kind == .damaged {
      report.damaged.append(PathRemark(path: path, remark: error.reason))
    }
    return false
  }

  private mutating func create(
    _ entry: TreeEntry, named name: ByteString, at path: ByteString
  ) throws {
    if case .directory = entry.node { return try createFolder(entry, name, path) }
    if let group = entry.linkGroup, let first = firstNames[group] {
      return try ladder.withFolder { try $0.link(name, to: first, below: root) }
    }
    note(try ladder.withFolder { try reader.create(entry, named: name, in: $0) }, at: path)
    if let group = entry.linkGroup { firstNames[group] = path }
  }

  private mutating func createFolder(
    _ entry: TreeEntry, _ name: ByteString, _ path: ByteString
  ) throws {
    let identity = try ladder.withFolder { folder throws(SystemError) in
      try folder.createFolder(name, permissions: 0o700)
      return try folder.status(name).identity
    }
    try ladder.descend(name, identity)
    open.append((path, entry))
  }

  /// Goes up to the folder at `depth`, setting the metadata of each that is left.
  private mutating func leave(to depth: Int) throws {
    while open.count > depth {
      let (path, entry) = open.removeLast()
      let remarks = ladder.withFolder { reader.setMetadata(of: entry, on: $0) }
      note(remarks, at: path)
      try ladder.ascend(to: open.count)
    }
  }

  /// Sets the metadata of the folder that the whole tree was made in.
  mutating func finishRoot(_ entry: TreeEntry) {
    note(reader.setMetadata(of: entry, on: root), at: "")
  }

  private mutating func note(_ remarks: EntryRemarks, at path: ByteString) {
    if remarks.ownerNotSet { report.ownersNotSet += 1 }
    report.failed += remarks.failures.map { PathRemark(path: path, remark: $0) }
  }
}
