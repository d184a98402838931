internal import ArchiveStore
internal import SandboxModel
internal import SystemIO

/// Stores one container's scanned tree: files as they are met, each folder's tree when all that is
/// below it is stored.
///
/// Folders are entered by handles. A folder or a file that cannot be read any more is named in the
/// report and left out; the others are stored.
struct ContainerWriter: ~Copyable {
  private let scan: ContainerScan
  let session: WritingSession
  private(set) var links: HardLinks
  private var ladder: FolderLadder
  private var frames: [Frame] = []
  private(set) var report = BackupReport()

  /// A folder in hand: what is to be stored in it, and what is.
  private struct Frame {
    let index: Int
    let children: [Int]
    var next = 0
    var entries: [TreeEntry] = []
  }

  init(
    _ scan: ContainerScan, _ session: WritingSession, _ links: HardLinks
  ) throws(SystemError) {
    self.scan = scan
    self.session = session
    self.links = links
    ladder = FolderLadder(root: try Folder.open(path: scan.container.absolutePath))
  }

  /// Stores the container; gives its root's entry, named as nothing.
  mutating func store() throws -> TreeEntry {
    push(0)
    while true {
      let top = frames.count - 1
      if frames[top].next < frames[top].children.count {
        let child = frames[top].children[frames[top].next]
        frames[top].next += 1
        try storeChild(child)
      } else if let root = try pop() {
        return root
      }
    }
  }

  private mutating func push(_ index: Int) {
    frames.append(Frame(index: index, children: scan.storedChildren(of: index)))
  }

  /// Stores the tree of the folder in hand and goes up; gives the entry when it was the root's.
  private mutating func pop() throws -> TreeEntry? {
    let frame = frames.removeLast()
    let tree = try session.storeTree(frame.entries)
    let attributes = try readAttributes(ladder.withFolder { $0.attributes }, frame.index)
    let entry = TreeEntry(
      name: scan.name(frame.index), node: .directory(tree),
      status: scan.entries[frame.index].status, attributes: attributes)
    report.count(entry, scan.entries[frame.index])
    if frames.isEmpty { return entry }
    frames[frames.count - 1].entries.append(entry)
    try ladder.ascend(to: frames.count - 1)
    return nil
  }

  private mutating func storeChild(_ index: Int) throws {
    let entry = scan.entries[index]
    do {
      if entry.status.kind == .directory {
        try ladder.descend(scan.name(index), entry.status.identity)
        return push(index)
      }
      let stored = try storeLeaf(index)
      frames[frames.count - 1].entries.append(stored)
      report.count(stored, entry)
    } catch let error as SystemError {
      report.missed(scan.logicalPath(index), error)
    }
  }

  private mutating func storeLeaf(_ index: Int) throws -> TreeEntry {
    let status = scan.entries[index].status
    let name = scan.name(index)
    switch status.kind {
    case .file: return try storeFile(index)
    case .symlink:
      let target = try ladder.withFolder { folder throws(SystemError) in try folder.target(of: name)
      }
      return try makeEntry(index, .symlink(target: target))
    case .fifo: return try makeEntry(index, .fifo)
    case .socket: return try makeEntry(index, .socket)
    case .characterDevice:
      return try makeEntry(index, .characterDevice(DeviceNumber(linux: status.specialDevice)))
    case .blockDevice:
      return try makeEntry(index, .blockDevice(DeviceNumber(linux: status.specialDevice)))
    case .directory: preconditionFailure("folders are pushed")
    }
  }

  /// The entry of what is not opened: a link or a special file.
  private mutating func makeEntry(_ index: Int, _ node: Node) throws -> TreeEntry {
    let name = scan.name(index)
    let attributes = try readAttributes(ladder.withFolder { $0.attributes(of: name) }, index)
    return TreeEntry(
      name: name, node: node, status: scan.entries[index].status, attributes: attributes)
  }

  private mutating func storeFile(_ index: Int) throws -> TreeEntry {
    let name = scan.name(index)
    let path = scan.logicalPath(index)
    let file = try ladder.withFolder { folder throws(SystemError) in try folder.file(name) }
    var status = try file.status()
    guard status.kind == .file else { throw SystemError.replaced(path) }
    var content = links.content(of: status)
    if content == nil {
      let reading = try readUntilStill(file, path, isDatabase: hasLog(name))
      (content, status) = (reading.content, reading.status)
      if !reading.stoodStill { report.changedWhileRead(path) }
      links.note(reading.content, of: status)
    }
    return TreeEntry(
      name: name, node: .file(content ?? .empty), status: status,
      attributes: try readAttributes(file.attributes, index),
      linkGroup: links.group(of: status))
  }

  /// Whether a SQLite log lies beside the file, which makes it a database whatever its first bytes.
  private func hasLog(_ name: ByteString) -> Bool {
    guard let children = frames.last?.children else { return false }
    let wanted = ByteString(Array(name.bytes) + Array("-wal".utf8))
    var (low, high) = (0, children.count)
    while low < high {
      let middle = (low + high) / 2
      if scan.name(children[middle]) < wanted { low = middle + 1 } else { high = middle }
    }
    return low < children.count && scan.name(children[low]) == wanted
  }

  /// Reads the extended attributes; those that cannot be read are named in the report.
  private mutating func readAttributes(
    _ source: ExtendedAttributes, _ index: Int
  ) throws -> [Attribute] {
    var attributes: [(name: ByteString, value: [UInt8])] = []
    do throws(SystemError) {
      for name in try source.names() where name != Self.hostLabel {
        if let value = try source.value(of: name) { attributes.append((name, value)) }
      }
    } catch {
      report.missed(scan.logicalPath(index), error)
    }
    return try attributes.map { try session.makeAttribute(name: $0.name, value: $0.value) }
  }

  /// The label of this host's security policy, which means nothing on another.
  private static let hostLabel: ByteString = "security.selinux"
}
