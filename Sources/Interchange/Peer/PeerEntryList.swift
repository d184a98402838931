internal import SystemIO

/// The properties of entries that a program's archive lacks, from the program's list of entries.
///
/// restic and borg write times in whole seconds into archives, which restic rounds, and restic
/// omits special files without a message. Their lists have the entries in the same order, so both
/// are read side by side, and neither is completely in memory.
final class PeerEntryList {
  private let kind: PeerKind
  private var reader: PeerEntryReader
  /// The next entry, if it was read and not used.
  private var waiting: PeerEntry?
  /// Waits until the program has ended. Returns its exit status, or nil if that is not known.
  private let end: () -> Int?
  /// The reason why the list is not used after some entry.
  private(set) var fault: String?
  /// The entries that the archive omits, and those of which the program has lost a part.
  private(set) var skipped = SkippedEntries()

  /// Starts the program. Nil if the program has no such list.
  convenience init?(
    _ snapshot: PeerSnapshot, of peer: Peer, isStopping: @escaping () -> Bool
  ) throws(InterchangeError) {
    guard let words = peer.entryWords(of: snapshot) else { return nil }
    let program = try peer.start(words, "list the entries of the snapshot in")
    let reader = PeerEntryReader(peer.kind) { buffer in
      (try? program.read(into: &buffer, isStopping: isStopping)) ?? 0
    }
    self.init(peer.kind, reader) { try? program.waitForEnd(isStopping: isStopping) }
  }

  /// Creates a list whose entries come from a reader.
  ///
  /// - Parameter end: Returns the exit status of the program after the last entry, or nil if that
  ///   is not known.
  init(_ kind: PeerKind, _ reader: PeerEntryReader, end: @escaping () -> Int?) {
    (self.kind, self.reader, self.end) = (kind, reader, end)
  }

  /// Whether the next entry of the archive is a special file, which is to be skipped. It is
  /// recorded.
  ///
  /// restic omits special files only in directories: those at the top of a snapshot, as after
  /// `restic backup .`, are in the archive as empty files.
  func isSpecialFile(_ path: ByteString) -> Bool {
    while fault == nil, let entry = next() {
      guard let type = entry.omittedType else {
        waiting = entry
        return false
      }
      skip(entry, "\(kind.rawValue) writes no \(type) into archives")
      if Self.isEqual(entry.path, path) { return true }
    }
    return false
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
    // The program removes its lock. If its list ended early, entries that the archive also lacks
    // would be missed.
    let code = end()
    if fault == nil, let code, code != 0 { fault = "its list ended with status \(code)" }
  }

  /// Returns the next entry; nil after the last one, and after a fault of the list.
  private func next() -> PeerEntry? {
    if let entry = waiting {
      waiting = nil
      return entry
    }
    let entry = reader.next()
    if entry == nil { fault = reader.fault }
    return entry
  }

  private func skip(_ entry: PeerEntry, _ reason: String) {
    let path = ByteString(joining: ByteString(entry.path).components.filter { $0 != "." })
    skipped.append(path: path, reason: reason)
  }

  /// Whether a path in the list belongs to an entry. In the list, bytes that are not UTF-8 are
  /// replaced, so only the order shows which entry it is.
  private static func isSame(_ listed: String, _ path: ByteString) -> Bool {
    guard path.bytes.allSatisfy({ $0 < 0x80 }) else { return true }
    return isEqual(listed, path)
  }

  /// Whether a path in the list is that of an entry, both with replacements for bytes that are not
  /// UTF-8.
  private static func isEqual(_ listed: String, _ path: ByteString) -> Bool {
    let path = ByteString(String(decoding: path.bytes, as: UTF8.self))
    return ByteString(listed).components.filter { $0 != "." } == path.components
  }
}
