internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// Stores directories from entries that arrive in tree order. Only the directories on the way to
/// the current entry are open.
struct TreeAssembler {
  private let session: WritingSession
  /// The open directories; the first is the root.
  private var levels: [Level]
  /// The names of the open directories below the root.
  private var names: [ByteString] = []
  /// The last entry that is not a directory: nothing can be below it.
  private var leaf: [ByteString]?
  /// Whether every directory that the source does not have gets the owner and time of the first
  /// entry found below it. Otherwise the paths are logical paths, and the directories above
  /// containers have those of a backup: owner 0, time 0.
  private let inheritsMetadata: Bool

  private struct Level {
    /// The directory's metadata; its reference is set when it is stored.
    var entry: TreeEntry
    var children = EncodedDirectory()
  }

  /// A reference for directories that are not stored yet.
  static let pending = TreeReference(Blake2b.hash([]))

  init(_ session: WritingSession, inheritsMetadata: Bool) {
    self.session = session
    self.inheritsMetadata = inheritsMetadata
    levels = [Level(entry: TreeEntry(name: "", node: .directory(Self.pending)))]
  }

  /// Adds the next entry. Returns false, and adds nothing, if an entry above it is not a directory.
  mutating func add(_ entry: TreeEntry, at path: [ByteString]) throws(StoreError) -> Bool {
    if let leaf, path.starts(with: leaf) { return false }
    leaf = nil
    guard let name = path.last else {
      if entry.isDirectory { levels[0].entry = entry }
      return true
    }
    try close(downTo: commonDepth(with: path.dropLast()))
    for directory in path.dropLast().dropFirst(levels.count - 1) {
      let inherits = inheritsMetadata || levels.count >= Self.containerDepth(in: path)
      open(implicit(directory, above: inherits ? entry : nil), directory)
    }
    if entry.isDirectory {
      open(entry, name)
    } else {
      leaf = path
      try append(entry, name)
    }
    return true
  }

  /// Adds the next entry, which is not a directory, in encoded form.
  mutating func add(leaf encoded: [UInt8], at path: [ByteString]) throws(StoreError) -> Bool {
    let isInOpenDirectory =
      levels.count == path.count && leaf.map { !path.starts(with: $0) } ?? true
      && names.elementsEqual(path.dropLast())
    guard isInOpenDirectory, let name = path.last else {
      return try add(try TreeEntry(encoded: encoded), at: path)
    }
    leaf = path
    try append(encoded, name)
    return true
  }

  /// Stores all directories and returns the entry of the root.
  mutating func finish() throws(StoreError) -> TreeEntry {
    try close(downTo: 0)
    return try stored(levels[0])
  }

  /// The number of open directories below the root that are on a path.
  private func commonDepth(with path: ArraySlice<ByteString>) -> Int {
    zip(names, path).prefix { $0 == $1 }.count
  }

  /// The number of components of a container's path, or of one above it: `apps/<app>/extensions`.
  private static func containerDepth(in path: [ByteString]) -> Int {
    path.first == "apps" ? 3 : 2
  }

  private func implicit(_ name: ByteString, above entry: TreeEntry?) -> TreeEntry {
    guard let entry else {
      return TreeEntry(name: name, node: .directory(Self.pending), permissions: 0o755)
    }
    return TreeEntry(
      name: name, node: .directory(Self.pending), permissions: 0o755, owner: entry.owner,
      group: entry.group, modified: entry.modified)
  }

  private mutating func open(_ entry: TreeEntry, _ name: ByteString) {
    levels.append(Level(entry: entry))
    names.append(name)
  }

  private mutating func close(downTo depth: Int) throws(StoreError) {
    while levels.count > depth + 1, let level = levels.popLast() {
      names.removeLast()
      try append(try stored(level), level.entry.name)
    }
  }

  private func stored(_ level: Level) throws(StoreError) -> TreeEntry {
    var entry = level.entry
    entry.node = .directory(try session.storeTree(level.children))
    return entry
  }

  private mutating func append(_ entry: TreeEntry, _ name: ByteString) throws(StoreError) {
    try append(try entry.encoded(), name)
  }

  private mutating func append(_ encoded: [UInt8], _ name: ByteString) throws(StoreError) {
    let last = levels.count - 1
    try name.withSpan { name throws(StoreError) in
      try levels[last].children.append(name, encoded)
    }
  }
}
