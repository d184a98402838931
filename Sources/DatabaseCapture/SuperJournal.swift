internal import SystemIO

/// The trailer of a journal for a transaction over several databases (pager.c, writeSuperJournal):
/// the name of a file, its length, a checksum, and the magic again.
enum SuperJournal {
  private static let longestName: UInt64 = 4096
  private static let trailer = 16
  /// The maximum number of bytes that belong to it.
  static let longestEnd = longestName + UInt64(trailer)

  /// Returns the file's name from the last bytes of a journal, or nil if there is none or if it was
  /// not completely written, in which case the transaction was certainly not committed.
  static func name(atEnd bytes: Span<UInt8>) -> ByteString? {
    let end = bytes.count - trailer
    guard end > 0, RollbackJournal.hasMagic(bytes, at: end + 8) else { return nil }
    let length = BigEndian.word(bytes, end)
    guard length > 0, length <= end else { return nil }
    let name = (end - Int(length))..<end
    let sum = BigEndian.word(bytes, end + 4)
    // The sum is over C chars, which are signed on some machines.
    var (plain, signed): (UInt32, UInt32) = (0, 0)
    for place in name {
      plain &+= UInt32(bytes[place])
      signed &+= UInt32(bitPattern: Int32(Int8(bitPattern: bytes[place])))
    }
    guard sum == plain || sum == signed, bytes[name.lowerBound] != 0 else { return nil }
    return ByteString(name.map { bytes[$0] })
  }
}
