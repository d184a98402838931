import ArchiveStore
import Codecs
import Foundation
import SystemIO
import Testing

/// A directory that is removed with its contents when the test ends.
final class TemporaryDirectory {
  let path: String

  init() {
    path = NSTemporaryDirectory() + "/archive-store-" + UUID().uuidString
    try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of a name in the directory.
  func callAsFunction(_ name: String) -> String { path + "/" + name }

  /// Returns the paths of all files in it, at any depth.
  func files() -> [String] {
    let all = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
    return all.filter { name in
      var isDirectory: ObjCBool = false
      return FileManager.default.fileExists(atPath: path + "/" + name, isDirectory: &isDirectory)
        && !isDirectory.boolValue
    }.sorted()
  }
}

/// The output and status of a program.
struct ProgramResult {
  let status: Int32
  let output: [UInt8]
  let errors: String

  var lines: [String] {
    String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
  }
}

/// Runs a shell command in a directory, in the C locale.
func run(_ command: String, in directory: String) throws -> ProgramResult {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/bin/bash")
  process.arguments = ["-o", "pipefail", "-c", command]
  process.currentDirectoryURL = URL(fileURLWithPath: directory)
  process.environment = ["PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"]
  let errors = directory + "/.stderr-" + UUID().uuidString
  _ = FileManager.default.createFile(atPath: errors, contents: nil)
  defer { try? FileManager.default.removeItem(atPath: errors) }
  let pipe = Pipe()
  process.standardOutput = pipe
  process.standardError = FileHandle(forWritingAtPath: errors)
  process.standardInput = FileHandle.nullDevice
  try process.run()
  let output = pipe.fileHandleForReading.readDataToEndOfFile()
  process.waitUntilExit()
  let text = FileManager.default.contents(atPath: errors) ?? Data()
  return ProgramResult(
    status: process.terminationStatus, output: Array(output),
    errors: String(decoding: text, as: UTF8.self))
}

/// Reproducible random bytes for each seed (SplitMix64).
struct SeededBytes {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }

  mutating func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
      let word = next()
      for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(8 * shift))) }
    }
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  mutating func number(_ range: Range<Int>) -> Int {
    range.lowerBound + Int(next() % UInt64(range.count))
  }
}

extension Repository {
  /// Makes a snapshot of this repository with a root tree.
  func makeSnapshot(_ tree: TreeReference, sequence: UInt64 = 1) -> Snapshot {
    Snapshot(
      repository: id, source: Blake2b.hash(Array("source".utf8)), sequence: sequence,
      time: Timestamp(seconds: 1_793_529_000 + Int64(sequence)), host: "host", user: "user",
      device: DeviceRecord(
        identity: "device", platform: "linux", layout: "folder", root: "/home/user"),
      policy: PolicyRecord(name: "everything", digest: Blake2b.hash([])), tree: tree,
      program: "sandboxctl test")
  }

  /// Stores the files of one directory and a snapshot of it.
  @discardableResult
  func back(
    up files: [(name: String, bytes: [UInt8])], sequence: UInt64 = 1, cache: IndexCache? = nil
  ) throws -> StoredSnapshot {
    let session = try beginWriting(cache: cache)
    let writer = try session.makeWriter()
    var entries: [TreeEntry] = []
    for file in files {
      let content = try writer.storeFile(
        logicalPath: ByteString("folders/test/" + file.name), bytes: file.bytes)
      entries.append(TreeEntry(name: ByteString(file.name), node: .file(content)))
    }
    try writer.flush()
    let tree = try session.storeTree(entries)
    return try session.finish(makeSnapshot(tree, sequence: sequence))
  }
}

extension WritingSession {
  /// Stores data with a separate writer.
  func withWriter<Value>(_ body: (ContentWriter) throws -> Value) throws -> Value {
    let writer = try makeWriter()
    let result = Result { try body(writer) }
    try writer.flush()
    return try result.get()
  }

  func storeFile(
    logicalPath: ByteString, hints: FileHints = FileHints(), _ body: (FileWriter) throws -> Void
  ) throws -> Content {
    try withWriter { try $0.storeFile(logicalPath: logicalPath, hints: hints, body) }
  }

  func storeFile(logicalPath: ByteString, bytes: [UInt8]) throws -> Content {
    try withWriter { try $0.storeFile(logicalPath: logicalPath, bytes: bytes) }
  }

  func storeBytes(_ bytes: [UInt8], kind: BlobKind) throws -> BlobID {
    try withWriter { try $0.storeBytes(bytes, kind: kind) }
  }

  func makeAttribute(name: ByteString, value: [UInt8]) throws -> Attribute {
    try withWriter { try $0.makeAttribute(name: name, value: value) }
  }
}

extension ContentWriter {
  func storeFile(
    logicalPath: ByteString, bytes: [UInt8], hints: FileHints = FileHints()
  ) throws -> Content {
    try storeFile(logicalPath: logicalPath, bytes: bytes.span, hints: hints)
  }
}

extension FileWriter {
  func append(_ bytes: [UInt8]) throws(StoreError) { try append(bytes.span) }
}

extension RepositoryReader {
  /// Returns a file's bytes, with zeros for holes.
  func bytes(of content: Content) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try readContent(content) { offset, piece in
      bytes += [UInt8](repeating: 0, count: Int(offset) - bytes.count)
      for index in 0..<piece.count { bytes.append(piece[index]) }
    }
    return bytes + [UInt8](repeating: 0, count: Int(content.size) - bytes.count)
  }

  func bytes(at path: ByteString, in snapshot: StoredSnapshot) throws -> [UInt8]? {
    guard let entry = try entry(at: path, in: snapshot.snapshot.tree),
      case .file(let content) = entry.node
    else { return nil }
    return try bytes(of: content)
  }
}

/// Returns the error thrown by a call, or nil if it throws none.
func storeError<Result>(_ body: () throws -> Result) -> StoreError? {
  do {
    _ = try body()
    return nil
  } catch { return error as? StoreError }
}

extension SeededBytes {
  /// Returns `count` bytes for a seed.
  static func some(seed: UInt64, count: Int) -> [UInt8] {
    var random = SeededBytes(seed: seed)
    return random.bytes(count)
  }
}

extension Digest {
  /// A digest under which nothing is stored.
  static let some = Blake2b.hash(Array("nothing that is stored".utf8))
}

/// Lets other threads run.
func sleepShortly() { usleep(1000) }
