package import ArchiveStore
internal import Codecs
internal import Synchronization
internal import SystemIO

/// Consecutive bytes of a file.
package enum FilePart: Sendable {
  case bytes(SharedReader.Slice)
  /// A number of zeros.
  case zeros(Int)

  /// The number of bytes.
  package var count: Int {
    switch self {
    case .bytes(let slice): slice.count
    case .zeros(let count): count
    }
  }
}

extension SnapshotFileSystem {
  /// Returns the bytes of a file from an offset on: at most `count`, and fewer at its end.
  ///
  /// - Throws: `io` if one of the blobs of the range is damaged or missing.
  package func read(
    _ number: UInt64, from offset: UInt64, count: Int
  ) throws(FileSystemError) -> [FilePart] {
    let node = try node(number)
    let content = try content(of: node)
    do throws(StoreError) {
      return try parts(of: content, from: offset, count: count)
    } catch { throw fault(error, at: node) }
  }

  /// Returns the bytes of a file from an offset on: at most `count`, and fewer at its end.
  func parts(
    of content: Content, from offset: UInt64, count: Int
  ) throws(StoreError) -> [FilePart] {
    guard offset < content.size, count > 0 else { return [] }
    let end = min(content.size, offset + UInt64(count))
    var parts: [FilePart] = []
    try forEachPiece(of: content, from: offset) { start, piece throws(StoreError) in
      guard start < end else { return false }
      let from = Int(max(offset, start) - start)
      let to = Int(min(end - start, piece.length))
      switch piece {
      case .hole: parts.append(.zeros(to - from))
      case .blob(let digest, let length):
        parts.append(.bytes(try reader.data(digest, length: length).part(from..<to)))
      }
      return true
    }
    return parts
  }

  /// Returns the offset of the next hole, or of the next data, at or after an offset, as lseek(2)
  /// with `SEEK_HOLE` and `SEEK_DATA`. The end of a file counts as a hole.
  ///
  /// - Throws: `noAddress` if there is none.
  package func seek(
    _ number: UInt64, from offset: UInt64, toHole: Bool
  ) throws(FileSystemError) -> UInt64 {
    let node = try node(number)
    let content = try content(of: node)
    guard offset < content.size else { throw .noAddress }
    var found: UInt64?
    do throws(StoreError) {
      try forEachPiece(of: content, from: offset) { start, piece throws(StoreError) in
        guard (piece.digest == nil) == toHole else { return true }
        found = max(offset, start)
        return false
      }
    } catch { throw fault(error, at: node) }
    if let found { return found }
    if toHole { return content.size }
    throw .noAddress
  }

  /// Returns the allocated size of a file in bytes: its size without holes. If a list of its pieces
  /// is damaged, all of the file counts as allocated.
  func allocatedBytes(of content: Content, _ node: MountNode) -> UInt64 {
    if content.level == 0 { return Self.sum(content.pieces) }
    if let known = allocated.withLock({ $0.value(content) }) { return known }
    var sum: UInt64 = 0
    do throws(StoreError) {
      try forEachPiece(of: content, from: 0) { _, piece throws(StoreError) in
        if piece.digest != nil { sum += piece.length }
        return true
      }
    } catch {
      _ = fault(error, at: node)
      return content.size
    }
    let bytes = sum
    allocated.withLock {
      $0.insert(bytes, for: content, cost: 64 + content.pieces.count * MemoryLayout<Piece>.stride)
    }
    return bytes
  }

  private static func sum(_ pieces: [Piece]) -> UInt64 {
    pieces.reduce(0) { $1.digest == nil ? $0 : $0 + $1.length }
  }

  /// Returns the content of a node that is a file.
  func content(of node: MountNode) throws(FileSystemError) -> Content {
    switch node.origin {
    case .fixed, .viewRoot, .entry(_, tree: _?): throw .isDirectory
    case .latest: throw .invalid
    case .entry:
      guard case .file(let content) = try storedEntry(of: node).node else { throw .invalid }
      return content
    }
  }

  // MARK: - Pieces

  /// Passes the pieces of a file that end after an offset, each with its own offset in the file,
  /// until `body` returns false. Only the lists that are needed are read.
  private func forEachPiece(
    of content: Content, from offset: UInt64,
    _ body: (UInt64, Piece) throws(StoreError) -> Bool
  ) throws(StoreError) {
    _ = try forEachPiece(
      content.pieces, level: content.level, start: 0, from: offset, body)
  }

  private func forEachPiece(
    _ pieces: [Piece], level: UInt8, start: UInt64, from offset: UInt64,
    _ body: (UInt64, Piece) throws(StoreError) -> Bool
  ) throws(StoreError) -> Bool {
    var start = start
    for piece in pieces {
      let end = start + piece.length
      defer { start = end }
      if end <= offset { continue }
      if level > 0, case .blob(let digest, let length) = piece {
        let list = try list(digest, level: level - 1, length: length)
        guard try forEachPiece(list, level: level - 1, start: start, from: offset, body) else {
          return false
        }
      } else {
        guard try body(start, piece) else { return false }
      }
    }
    return true
  }

  private func list(
    _ digest: Digest, level: UInt8, length: UInt64
  ) throws(StoreError) -> [Piece] {
    let key = PieceListKey(list: .blob(digest, length: length), level: level)
    if let held = lists.withLock({ $0.value(key) }) { return held }
    turn.pass()
    let pieces = try reader.pieces(ofList: digest, level: level, length: length)
    lists.withLock {
      $0.insert(pieces, for: key, cost: 64 + pieces.count * MemoryLayout<Piece>.stride)
    }
    return pieces
  }
}
