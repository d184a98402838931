import ArchiveStore
import Codecs
import PolicyEngine
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// A cache directory, and generated files for a state file.
struct StateFixture {
  let directory: TemporaryDirectory
  let key = StateKey(repository: Blake2b.hash([1]), source: Blake2b.hash([2]))
  static let snapshot = Blake2b.hash([4])

  init() throws { directory = try TemporaryDirectory("state", inMemory: true) }

  func open(key: StateKey? = nil, boot: Boot = Boot(Host.bootID)) throws -> SourceState {
    try SourceState.open(key ?? self.key, in: directory.path, program: "test", boot: boot)
  }

  /// The path of a file of the state.
  func path(_ suffix: String) -> ByteString {
    ByteString("sandboxctl/\(key.repository.hex)/\(key.source.hex)" + suffix)
  }

  /// The directory that contains these files.
  var above: ByteString { ByteString("sandboxctl/\(key.repository.hex)") }

  func bytes() throws -> [UInt8] { try directory.read(path(".state")) }

  /// Writes the state's bytes as a file that this user owns.
  func replace(_ bytes: [UInt8], _ suffix: String = ".state") throws {
    try directory.write(bytes, at: path(suffix))
    let above = try Directory.open(path: directory.path(above))
    try above.setPermissions(0o600, of: ByteString(key.source.hex + suffix))
  }

  func isThere(_ suffix: String) throws -> Bool {
    try directory.directory.statusIfPresent(path(suffix)) != nil
  }

  // MARK: - Generated files

  static let time = Timestamp(seconds: 1_700_000_000, nanoseconds: 5)

  /// The status of a generated file, which depends only on its number.
  static func status(_ number: UInt64, _ kind: FileKind = .file) -> FileStatus {
    FileStatus(
      kind, identity: FileIdentity(device: 1, inode: 1000 + number), size: number,
      modified: Timestamp(seconds: time.seconds + Int64(number), nanoseconds: 7),
      changed: Timestamp(seconds: time.seconds + Int64(number), nanoseconds: 8))
  }

  static func name(_ number: UInt64) -> ByteString {
    let digits = String(number)
    return ByteString("file " + String(repeating: "0", count: 7 - digits.count) + digits)
  }

  static func entry(_ number: UInt64) -> TreeEntry {
    let content = Content(
      size: number + 1, level: 0,
      pieces: [.blob(Blake2b.hash([UInt8(number % 251)]), length: number + 1)])
    return TreeEntry(name: name(number), node: .file(content), owner: 1000)
  }

  static func tree(_ number: UInt8) -> TreeReference { TreeReference(Blake2b.hash([9, number])) }

  /// Records a directory of generated files.
  static func record(
    _ state: SourceState, _ numbers: some Sequence<UInt64>, tree: UInt8 = 1,
    directories: [(name: ByteString, location: RecordPointer?)] = []
  ) throws -> RecordPointer? {
    var record = state.makeRecord()
    for number in numbers {
      let encoded = try entry(number).encoded()
      name(number).withSpan { record.add($0, status(number), isStable: true, encoded: encoded) }
    }
    for (number, directory) in directories.enumerated() {
      let entry = TreeEntry(name: directory.name, node: .directory(Self.tree(UInt8(number))))
      let encoded = try entry.encoded()
      directory.name.withSpan {
        record.add(
          $0, status(UInt64(number), .directory), isStable: true, encoded: encoded,
          record: directory.location)
      }
    }
    return state.write(record, tree: Self.tree(tree))
  }

  static func container(
    _ path: ByteString, _ location: RecordPointer?
  ) throws -> SourceState.RecordedContainer {
    let entry = TreeEntry(name: "root", node: .directory(tree(1)))
    return SourceState.RecordedContainer(
      path: path, status: status(77, .directory), isStable: true, encoded: try entry.encoded(),
      directory: location)
  }

  /// Writes a state of one container: files 0, 2, 4 and a directory `sub` with files 10, 11, 12.
  func writeSmall(_ path: ByteString = "folders/tree") throws {
    let state = try open()
    #expect(state.remarks.isEmpty)
    let inner = try Self.record(state, [10, 11, 12], tree: 0)
    let outer = try Self.record(state, [0, 2, 4], directories: [("sub", inner)])
    try state.finish([try Self.container(path, outer)], snapshot: Self.snapshot, packs: [])
  }
}

extension SourceState {
  /// The recorded entries of a directory. `entry` is the entry of the directory in its parent, or
  /// that of a container's root.
  func directory(_ entry: KnownEntry?, key: DirectoryKey) -> KnownDirectory {
    directory(at: entry?.directory, key: key)
  }
}

extension KnownDirectory {
  /// The recorded entry with a name.
  mutating func find(_ name: ByteString, _ status: FileStatus) -> KnownEntry? {
    name.withSpan { find($0, status) }
  }

  /// The recorded entry of a generated file, which must exist.
  mutating func known(_ number: UInt64, as status: FileStatus? = nil) throws -> KnownEntry {
    let found = find(StateFixture.name(number), status ?? StateFixture.status(number))
    return try #require(found, "\(number)")
  }

  /// The recorded entry of a directory, which must exist.
  mutating func knownDirectory(_ name: ByteString) throws -> KnownEntry {
    let found = find(name, StateFixture.status(0, .directory))
    return try #require(found, "\(name)")
  }

  mutating func lacks(_ name: ByteString) -> Bool { find(name, StateFixture.status(0)) == nil }
}
