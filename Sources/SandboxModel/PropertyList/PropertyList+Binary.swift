internal import SystemIO

extension PropertyList {
  /// Returns the value as a binary property list; equal values produce equal bytes. Each occurrence
  /// of a value is written separately.
  ///
  /// - Throws: `propertyList` for a string that is not UTF-8, `limit` for a value nested deeper
  ///   than 64 levels, the reader's limit.
  package func binary() throws(ModelError) -> [UInt8] {
    var writer = BinaryPropertyListWriter()
    _ = writer.reserve(self)
    try writer.fill(self, at: 0, depth: 0)
    return writer.file()
  }
}

/// Collects the objects of a binary property list, each container before its content.
private struct BinaryPropertyListWriter {
  /// The bytes of each object; for arrays and dictionaries without their references.
  private var heads: [[UInt8]] = []
  private var references: [[Int]] = []

  /// Reserves the next number for a value.
  mutating func reserve(_ value: PropertyList) -> Int {
    heads.append([])
    references.append([])
    return heads.count - 1
  }

  mutating func fill(_ value: PropertyList, at index: Int, depth: Int) throws(ModelError) {
    switch value {
    case .array(let elements):
      try PropertyList.checkDepth(depth)
      heads[index] = Self.head(0xa0, elements.count)
      references[index] = elements.map { reserve($0) }
      for (number, element) in zip(references[index], elements) {
        try fill(element, at: number, depth: depth + 1)
      }
    case .dictionary(let members):
      try PropertyList.checkDepth(depth)
      heads[index] = Self.head(0xd0, members.count)
      let all = members.map { PropertyList.string($0.key) } + members.map(\.value)
      references[index] = all.map { reserve($0) }
      for (number, element) in zip(references[index], all) {
        try fill(element, at: number, depth: depth + 1)
      }
    default: heads[index] = try Self.scalar(value)
    }
  }

  private static func scalar(_ value: PropertyList) throws(ModelError) -> [UInt8] {
    switch value {
    case .string(let text): return try string(text)
    case .integer(let number) where number < 0:
      return [0x13] + bigEndian(UInt64(bitPattern: number), 8)
    case .integer(let number): return integer(UInt64(number))
    case .unsigned(let number):
      return number <= UInt64(Int64.max)
        ? integer(number) : [0x14] + bigEndian(0, 8) + bigEndian(number, 8)
    case .real(let number): return [0x23] + bigEndian(number.bitPattern, 8)
    case .bool(let flag): return [flag ? 9 : 8]
    case .date(let seconds): return [0x33] + bigEndian(seconds.bitPattern, 8)
    case .data(let bytes): return head(0x40, bytes.count) + bytes
    case .uid(let number):
      let size = width(number)
      return [0x80 | UInt8(size - 1)] + bigEndian(number, size)
    case .array, .dictionary: return []
    }
  }

  private static func string(_ text: ByteString) throws(ModelError) -> [UInt8] {
    if text.bytes.allSatisfy({ $0 < 0x80 }) { return head(0x50, text.count) + text.bytes }
    guard let string = text.utf8 else {
      throw ModelError(.propertyList, PropertyList.writing, reason: "'\(text)' is not UTF-8")
    }
    let units = Array(string.utf16)
    return head(0x60, units.count) + units.flatMap { bigEndian(UInt64($0), 2) }
  }

  private static func head(_ marker: UInt8, _ count: Int) -> [UInt8] {
    count < 15 ? [marker | UInt8(count)] : [marker | 15] + integer(UInt64(count))
  }

  private static func integer(_ number: UInt64) -> [UInt8] {
    let size = width(number)
    return [0x10 | UInt8(size.trailingZeroBitCount)] + bigEndian(number, size)
  }

  /// Returns the number of bytes that a number needs: 1, 2, 4 or 8.
  private static func width(_ number: UInt64) -> Int {
    number <= 0xff ? 1 : number <= 0xffff ? 2 : number <= 0xffff_ffff ? 4 : 8
  }

  private static func bigEndian(_ number: UInt64, _ size: Int) -> [UInt8] {
    (0..<size).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * (size - 1 - $0))) }
  }

  /// Returns the file: header, objects, offset table, trailer.
  func file() -> [UInt8] {
    var output = Array("bplist00".utf8)
    let referenceSize = Self.width(UInt64(heads.count - 1))
    var offsets: [Int] = []
    for (head, references) in zip(heads, references) {
      offsets.append(output.count)
      output += head
      for number in references { output += Self.bigEndian(UInt64(number), referenceSize) }
    }
    let table = output.count
    let offsetSize = Self.width(UInt64(table))
    for offset in offsets { output += Self.bigEndian(UInt64(offset), offsetSize) }
    output += [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)]
    output += Self.bigEndian(UInt64(heads.count), 8) + Self.bigEndian(0, 8)
    return output + Self.bigEndian(UInt64(table), 8)
  }
}
