internal import Codecs
internal import SystemIO

/// The properties of entries that a program's archive does not have, from its list of them.
///
/// restic and borg write times in whole seconds into archives, which restic rounds, and restic omits
/// special files without a message. Their lists have the entries in the same order, so both are read
/// side by side, and neither is in memory as a whole.
final class PeerEntryList {
  private let kind: PeerKind
  private let program: RunningProgram
  private let isStopping: () -> Bool
  private var bytes: [UInt8] = []
  private var start = 0
  private var isAtEnd = false
  /// The reason why the list is not used from some entry on.
  private(set) var fault: String?
  /// The entries that the archive omits, and those of which the program has lost a part.
  private(set) var skipped = SkippedEntries()

  /// The maximum length of a line in bytes: a path of 4,095 bytes whose bytes are all escaped, and
  /// as long a target.
  private static let lineLimit = 1 << 16

  /// Starts the program. Nil if it has no such list.
  init?(
    _ snapshot: PeerSnapshot, of peer: Peer, isStopping: @escaping () -> Bool
  ) throws(InterchangeError) {
    guard let words = peer.entryWords(of: snapshot) else { return nil }
    kind = peer.kind
    self.isStopping = isStopping
    program = try peer.start(words, "list the entries of the snapshot in")
  }

  /// An entry of the list.
  private struct Entry {
    let path: String
    let modified: Timestamp?
    /// The type, if archives do not contain it.
    let omittedType: String?
    let isDamaged: Bool
  }

  /// Returns the time of the next entry of the archive, or nil if the list does not have it.
  func time(of path: ByteString) -> Timestamp? {
    while fault == nil {
      guard let entry = next() else {
        if fault == nil { fault = "the list of entries is shorter than the archive" }
        return nil
      }
      if let type = entry.omittedType {
        skip(entry, "\(kind.rawValue) writes no \(type) into archives")
        continue
      }
      guard Self.isSame(entry.path, path) else {
        fault = "the list of entries has '\(ByteString(entry.path))' instead of '\(path)'"
        return nil
      }
      if entry.isDamaged { skip(entry, "\(kind.rawValue) has lost a part of it") }
      return entry.modified
    }
    return nil
  }

  /// Records the entries of the list after the last one of the archive.
  func finish() {
    while fault == nil, let entry = next() {
      skip(
        entry,
        entry.omittedType.map { "\(kind.rawValue) writes no \($0) into archives" }
          ?? "\(kind.rawValue) did not write it into the archive")
    }
    // It removes its lock. A list that ends early would lack entries that the archive lacks, too.
    let code = try? program.waitForEnd(isStopping: isStopping)
    if fault == nil, let code, code != 0 { fault = "its list ended with status \(code)" }
  }

  private func skip(_ entry: Entry, _ reason: String) {
    let path = ByteString(joining: ByteString(entry.path).components.filter { $0 != "." })
    skipped.append(path: path, reason: reason)
  }

  /// Whether a path of the list is that of an entry. In the list, bytes that are not UTF-8 are
  /// replaced, so only the order shows which entry it is.
  private static func isSame(_ listed: String, _ path: ByteString) -> Bool {
    guard path.bytes.allSatisfy({ $0 < 0x80 }) else { return true }
    return ByteString(listed).components.filter { $0 != "." } == path.components
  }

  // MARK: - Lines

  private func next() -> Entry? {
    while let line = nextLine() {
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
  private func entry(_ json: JSON) -> Entry? {
    guard let path = json["path"]?.string else { return nil }
    if kind == .borg {
      return Entry(
        path: path, modified: json["isomtime"]?.string.flatMap { PeerSnapshot.time($0) },
        omittedType: nil, isDamaged: json["healthy"]?.bool == false)
    }
    let form = json["struct_type"]?.string ?? json["message_type"]?.string
    guard form == "node", let type = json["type"]?.string else { return nil }
    return Entry(
      path: path, modified: json["mtime"]?.string.flatMap { PeerSnapshot.time($0) },
      omittedType: ["file", "dir", "symlink"].contains(type) ? nil : type, isDamaged: false)
  }

  /// Returns the next line without its end, or nil after the last one.
  private func nextLine() -> [UInt8]? {
    while true {
      if let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { start = end + 1 }
        return Array(bytes[start..<end])
      }
      bytes.removeFirst(start)
      start = 0
      if isAtEnd || fault != nil || !readMore() { return nil }
    }
  }

  private func readMore() -> Bool {
    guard bytes.count < Self.lineLimit else {
      fault = "a line of the list of entries has more than \(Self.lineLimit) bytes"
      return false
    }
    var portion = [UInt8](repeating: 0, count: Self.lineLimit)
    let count = try? program.read(into: &portion, isStopping: isStopping)
    guard let count, count > 0 else {
      isAtEnd = true
      return false
    }
    bytes += portion[..<count]
    return true
  }
}
