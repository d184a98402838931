internal import SystemIO

/// What stands at the end of a journal of a transaction over several databases (pager.c,
/// writeSuperJournal): the name of a file, its length, a checksum, and the magic once more.
enum SuperJournal {
  private static let longestName: UInt64 = 4096
  private static let trailer = 16
  /// How many bytes from the end may belong to it.
  static let longestEnd = longestName + UInt64(trailer)

  /// The file's name by the last bytes of a journal; nil where none is, and where it was not wholly
  /// written: then the transaction was not committed for sure.
  static func name(atEnd bytes: Span<UInt8>) -> ByteString? {
    let end = bytes.count - trailer
    guard end > 0, RollbackJournal.hasMagic(bytes, at: end + 8) else { return nil }
    let length = BigEndian.word(bytes, end)
    guard length > 0, length <= end else { return nil }
    let name = (end - Int(length))..<end
    let sum = BigEndian.word(bytes, end + 4)
    // The sum is one of C's chars, which have a sign on some machines.
    var (plain, signed): (UInt32, UInt32) = (0, 0)
    for place in name {
      plain &+= UInt32(bytes[place])
      signed &+= UInt32(bitPattern: Int32(Int8(bitPattern: bytes[place])))
    }
    guard sum == plain || sum == signed, bytes[name.lowerBound] != 0 else { return nil }
    return ByteString(name.map { bytes[$0] })
  }
}
