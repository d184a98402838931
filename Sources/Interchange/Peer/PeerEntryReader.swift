internal import Codecs
internal import SystemIO

/// An entry of a program's list.
struct PeerEntry: Hashable, Sendable {
  let path: String
  /// The time of the last change; nil if the list has no valid one.
  let modified: Timestamp?
  /// The type in words, if archives do not contain it.
  var omittedType: String?
  /// Whether the program has lost a part of it.
  var isDamaged = false
}

/// Reads the entries of a program's list while its output arrives: a JSON object on each line.
///
/// Another user may have written the repository, so the length of a line is limited, and no text in
/// it except the path is used in messages.
struct PeerEntryReader {
  private let kind: PeerKind
  /// Reads the next bytes of the output into a buffer. Returns their number; 0 at the end.
  private let readOutput: (inout [UInt8]) -> Int
  private var bytes: [UInt8] = []
  private var start = 0
  private var isAtEnd = false
  private var portion = [UInt8](repeating: 0, count: Self.lineLimit)
  /// The reason why no more entries are read, unless it is the end of the list.
  private(set) var fault: String?

  /// The maximum length of a line in bytes: a path of 4,095 bytes that are all escaped, and an
  /// equally long target.
  static let lineLimit = 1 << 16

  /// Begins a list of restic (`ls --json`) or borg (`list --json-lines`).
  ///
  /// - Parameter output: Reads the next bytes of the output into a buffer and returns their number;
  ///   0 at the end.
  init(_ kind: PeerKind, output: @escaping (inout [UInt8]) -> Int) {
    (self.kind, readOutput) = (kind, output)
  }

  /// Returns the next entry; nil after the last one and after a fault.
  mutating func next() -> PeerEntry? {
    while fault == nil, let line = nextLine() {
      if line.isEmpty { continue }
      guard let json = try? JSON(parsing: line) else {
        fault = "the list of entries is not JSON"
        return nil
      }
      if let entry = entry(json) { return entry }
    }
    return nil
  }

  /// Returns the entry of a line, or nil if it describes something else.
  private func entry(_ json: JSON) -> PeerEntry? {
    guard let path = json["path"]?.string else { return nil }
    if kind == .borg {
      return PeerEntry(
        path: path, modified: json["isomtime"]?.string.flatMap { PeerSnapshot.time($0) },
        isDamaged: json["healthy"]?.bool == false)
    }
    let form = json["struct_type"]?.string ?? json["message_type"]?.string
    guard form == "node", let type = json["type"]?.string else { return nil }
    return PeerEntry(
      path: path, modified: json["mtime"]?.string.flatMap { PeerSnapshot.time($0) },
      omittedType: Self.omittedType(type))
  }

  /// Returns a type of restic (`restic.Node`) in words; nil for those that are in archives.
  private static func omittedType(_ type: String) -> String? {
    switch type {
    case "file", "dir", "symlink": nil
    case "fifo", "socket", "dev", "chardev": type
    default: "entry of another type"
    }
  }

  // MARK: - Lines

  /// Returns the next line without its end, or nil after the last one.
  private mutating func nextLine() -> [UInt8]? {
    while true {
      if let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { start = end + 1 }
        return Array(bytes[start..<end])
      }
      bytes.removeFirst(start)
      start = 0
      if isAtEnd {
        defer { bytes = [] }
        return bytes.isEmpty ? nil : bytes
      }
      guard bytes.count < Self.lineLimit else {
        fault = "a line of the list of entries has more than \(Self.lineLimit) bytes"
        return nil
      }
      let count = readOutput(&portion)
      isAtEnd = count <= 0
      bytes += portion.prefix(max(0, count))
    }
  }
}
