import DatabaseCapture
import SystemIO
import TestSupport

/// Stores the results of a capture: the latest content of each member.
final class Shelf {
  private(set) var contents: [DatabaseMember: [UInt8]] = [:]
  /// The members that were stored, in order, including those of failed attempts.
  private(set) var calls: [DatabaseMember] = []
  /// Called before a member is read, with the number of earlier reads of that member.
  var beforeReading: (DatabaseMember, Int) throws -> Void = { _, _ in }
  /// Called for each piece.
  var atPiece: (DatabaseMember) throws -> Void = { _ in }

  func store(_ reader: MemberReader) throws {
    let before = calls.filter { $0 == reader.member }.count
    calls.append(reader.member)
    try beforeReading(reader.member, before)
    var bytes: [UInt8] = []
    try reader.read(
      data: { piece in
        bytes.append(copying: piece)
        try atPiece(reader.member)
      },
      hole: { bytes.append(contentsOf: repeatElement(0, count: Int($0))) })
    contents[reader.member] = bytes
  }

  /// Writes the members of a result as files in a directory.
  func restore(_ result: CaptureResult, to directory: TemporaryDirectory, at location: ByteString)
    throws
  {
    for member in result.members {
      try directory.write(contents[member.member] ?? [], at: location.appending(member.name))
    }
  }
}

extension [UInt8] {
  mutating func append(copying piece: Span<UInt8>) {
    piece.withUnsafeBufferPointer { append(contentsOf: $0) }
  }
}

extension MemberReader {
  /// Reads everything in order: the data in pieces, and the lengths of holes.
  func read(data: (Span<UInt8>) throws -> Void, hole: (UInt64) throws -> Void) throws {
    var piece: [UInt8] = []
    try readExtents(
      data: { range in
        piece.removeAll()
        try read(range, appendingTo: &piece)
        if !piece.isEmpty { try data(piece.span) }
        return piece.count
      }, hole: hole)
  }
}
