internal import SystemIO

/// The header of a member as Android writes it: a POSIX header, and before it a pax header with the
/// records `size` and `path` if the name is long or not ASCII or the size does not fit.
///
/// Android's reader takes permissions and time from the first of both headers and knows no other
/// records, and without `size` it takes the pax header's size for the file's. Therefore `PaxMember`
/// is not used.
///
/// Source: AOSP, `BackupHelpers.cpp` (`write_tarfile`), `TarBackupReader.java`.
struct AndroidTarHeader {
  /// The name in two parts: `apps/<package>/<token>`, and the path in that tree.
  let prefix: ByteString
  let path: ByteString
  let isDirectory: Bool
  let size: UInt64
  let permissions: UInt16
  let owner: UInt32
  let group: UInt32
  /// The modification time in seconds since 1970.
  let modified: Int64

  private static let octalLimit: UInt64 = 0o777_7777_7777
  /// The times that a header can have, in seconds since 1970: up to the year 2242.
  static let times = 0...Int64(octalLimit)

  private var name: ByteString { prefix.appending(path) }

  private var needsExtension: Bool {
    prefix.count >= 155 || path.count >= 100 || size > Self.octalLimit
      || name.bytes.contains { $0 >= 0x80 }
  }

  /// Returns the headers in whole blocks.
  func encoded() -> [UInt8] {
    guard needsExtension else { return block() }
    let records = Self.record("size", ByteString("\(size)")) + Self.record("path", name)
    var header = block()
    let leaf = "PaxHeader/" + Array((path.lastComponent ?? "").bytes)
    Self.set(&header, 0..<100, to: leaf)
    Self.set(&header, 345..<500, to: Array(prefix.bytes))
    Self.set(&header, 124..<136, to: Self.octal(UInt64(records.count), digits: 11))
    header[156] = UInt8(ascii: "x")
    Self.setChecksum(of: &header)
    let zeros = Self.padding(after: UInt64(records.count))
    return header + records + [UInt8](repeating: 0, count: zeros) + block()
  }

  /// Returns the number of zeros after content of `size` bytes.
  static func padding(after size: UInt64) -> Int {
    let rest = Int(size % UInt64(AndroidTarMember.blockSize))
    return rest == 0 ? 0 : AndroidTarMember.blockSize - rest
  }

  private func block() -> [UInt8] {
    var block = [UInt8](repeating: 0, count: AndroidTarMember.blockSize)
    if name.count <= 100 {
      Self.set(&block, 0..<100, to: Array(name.bytes))
    } else {
      Self.set(&block, 0..<100, to: Array(path.bytes))
      Self.set(&block, 345..<500, to: Array(prefix.bytes))
    }
    Self.set(&block, 100..<108, to: Self.octal(UInt64(permissions & 0o7777), digits: 6) + " ")
    Self.set(&block, 108..<116, to: Self.octal(UInt64(owner) & 0o777_7777, digits: 7))
    Self.set(&block, 116..<124, to: Self.octal(UInt64(group) & 0o777_7777, digits: 7))
    Self.set(&block, 124..<136, to: Self.octal(min(size, Self.octalLimit), digits: 11))
    let time = min(UInt64(max(0, modified)), Self.octalLimit)
    Self.set(&block, 136..<148, to: Self.octal(time, digits: 11))
    block[156] = UInt8(ascii: isDirectory ? "5" : "0")
    Self.set(&block, 257..<265, to: Array("ustar\u{0}00".utf8))
    Self.setChecksum(of: &block)
    return block
  }

  private static func set(_ block: inout [UInt8], _ field: Range<Int>, to bytes: [UInt8]) {
    for index in field { block[index] = 0 }
    for (index, byte) in zip(field, bytes) { block[index] = byte }
  }

  private static func setChecksum(of block: inout [UInt8]) {
    set(&block, 148..<156, to: [UInt8](repeating: 0x20, count: 8))
    let sum = block.reduce(0) { $0 + UInt64($1) }
    set(&block, 148..<156, to: octal(sum, digits: 6) + "\u{0} ")
  }

  private static func octal(_ number: UInt64, digits: Int) -> [UInt8] {
    let text = Array(String(number, radix: 8).utf8)
    return [UInt8](repeating: 0x30, count: max(0, digits - text.count)) + text
  }

  /// Returns `<length> <key>=<value>\n`. The length includes its own digits.
  private static func record(_ key: String, _ value: ByteString) -> [UInt8] {
    let rest = key.utf8.count + value.count + 3
    var length = rest
    while "\(length)".utf8.count + rest != length { length = "\(length)".utf8.count + rest }
    return Array("\(length) \(key)=".utf8) + Array(value.bytes) + [UInt8(ascii: "\n")]
  }
}

private func + (left: String, right: [UInt8]) -> [UInt8] { Array(left.utf8) + right }
private func + (left: [UInt8], right: String) -> [UInt8] { left + Array(right.utf8) }
