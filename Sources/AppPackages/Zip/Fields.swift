internal import Codecs

/// The numbers of a record; 0 beyond the end of the bytes, which the check of the record's
/// signature prevents.
struct Fields {
  private let bytes: [UInt8]
  private let start: Int

  init(_ bytes: [UInt8], at start: Int) {
    self.bytes = bytes
    self.start = start
  }

  func number16(_ offset: Int) -> UInt16 { number(offset) }
  func number32(_ offset: Int) -> UInt32 { number(offset) }
  func number64(_ offset: Int) -> UInt64 { number(offset) }

  private func number<Value: FixedWidthInteger & BitwiseCopyable>(_ offset: Int) -> Value {
    let first = start + offset
    guard first >= 0, first <= bytes.count - MemoryLayout<Value>.size else { return 0 }
    return LittleEndian.integer(bytes.span, at: first)
  }
}
