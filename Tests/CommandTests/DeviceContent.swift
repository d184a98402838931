import Codecs
import SandboxModel
import SystemIO
import TestSupport

/// All entries of a device with its trash and safe harbor, independent of the UUIDs of its
/// containers and the names of trash operations: if two values are equal, neither has lost anything
/// that the other has.
struct DeviceContent: Equatable {
  struct Entry: Equatable {
    let kind: FileKind
    let permissions: UInt16
    /// The modification time of a file; nil for a directory, whose time changes when an entry is
    /// removed.
    let modified: Timestamp?
    let content: Digest?
    let target: ByteString?
  }

  enum Location { case containers, trash, harbor }

  private(set) var entries: [ByteString: Entry] = [:]

  /// Reads a device in a directory.
  init(_ directory: TemporaryDirectory, _ device: ByteString = "device") throws {
    for (path, record) in try TreeRecord.all(in: directory, device) {
      let name = path.lastComponent ?? ""
      if Self.isOwn(path, record) { continue }
      let isMade = name == AppUpdateFixture.metadata || name == "operation.json"
      let isFile = record.kind == .file
      let general = Self.general(path)
      guard entries[general] == nil else {
        throw Program.Failure(description: "two entries are '\(general)'")
      }
      entries[general] = Entry(
        kind: record.kind, permissions: record.permissions,
        modified: isFile && !isMade ? record.modified : nil,
        content: isMade ? nil : record.content,
        target: record.target.map { Self.general($0) })
    }
  }

  /// Whether an entry is the program's own: a lock, a journal, or an empty directory. The
  /// directories of operations in the trash count as data.
  private static func isOwn(_ path: ByteString, _ record: TreeRecord) -> Bool {
    let parts = path.components
    guard parts.first == ".sandboxctl" else { return false }
    if parts.count < 3 { return true }
    return parts[1] != "trash" && (parts[1] != "safe-harbor" || record.kind == .directory)
  }

  /// Returns a path with a placeholder for each UUID and each operation.
  private static func general(_ path: ByteString) -> ByteString {
    var parts = path.components
    if parts.count > 2, parts[0] == ".sandboxctl", parts[1] == "trash" { parts[2] = "operation" }
    for index in parts.indices where isUUID(parts[index].bytes) { parts[index] = "uuid" }
    return ByteString(joining: parts)
  }

  private static func isUUID(_ name: ArraySlice<UInt8>) -> Bool {
    let dash = UInt8(ascii: "-")
    return name.count == 36 && [8, 13, 18, 23].allSatisfy { name[name.startIndex + $0] == dash }
  }

  /// Returns the hashes of all files of the app's Documents in a location, by their paths in it.
  func documents(in location: Location) -> [ByteString: Digest] {
    var found: [ByteString: Digest] = [:]
    for (path, entry) in entries {
      let parts = path.components
      guard let start = parts.firstIndex(of: "Documents"), entry.kind == .file,
        Self.location(parts) == location, !parts.contains("PluginKitPlugin"),
        !parts.contains("extensions"),
        !parts.contains("Shared")
      else { continue }
      let inner = parts[(start + 1)...].map(\.bytes).joined(separator: [UInt8(ascii: "/")])
      found[ByteString(inner)] = entry.content
    }
    return found
  }

  private static func location(_ parts: [ByteString]) -> Location {
    guard parts.first == ".sandboxctl" else { return .containers }
    return parts[1] == "trash" ? .trash : .harbor
  }

  /// Describes the differences for a message.
  func differences(from other: Self) -> [String] {
    Set(entries.keys).union(other.entries.keys).filter { entries[$0] != other.entries[$0] }.sorted()
      .map { path in
        let (here, there) = (entries[path], other.entries[path])
        return "\(path): \(here.map { "\($0)" } ?? "gone"), not \(there.map { "\($0)" } ?? "gone")"
      }
  }
}
