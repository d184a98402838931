extension PropertyList {
  /// Returns the value as a binary property list; equal values produce equal bytes. Each occurrence
  /// of a value is written separately.
  ///
  /// - Throws: `limit` for a value nested deeper than 64 levels, the reader's limit.
  public func binary() throws(CodecError) -> [UInt8] {
    var writer = BinaryWriter()
    _ = writer.reserve(self)
    try writer.fill(self, at: 0, depth: 0)
    return writer.file()
  }

  /// Collects the objects of a binary property list, each container before its content.
  private struct BinaryWriter {
    /// The bytes of each object; for arrays and dictionaries without their references.
    private var heads: [[UInt8]] = []
    private var references: [[Int]] = []

    /// Reserves the next number for a value.
    mutating func reserve(_ value: PropertyList) -> Int {
      heads.append([])
      references.append([])
      return heads.count - 1
    }

    mutating func fill(_ value: PropertyList, at index: Int, depth: Int) throws(CodecError) {
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
      default: heads[index] = Self.scalar(value)
      }
    }

    private static func scalar(_ value: PropertyList) -> [UInt8] {
      switch value {
      case .string(let text): return string(text)
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

    private static func string(_ text: String) -> [UInt8] {
      if text.utf8.allSatisfy({ $0 < 0x80 }) { return head(0x50, text.utf8.count) + text.utf8 }
      let units = Array(text.utf16)
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

  /// Reads a binary property list ("bplist00"): objects, a table of their offsets, a trailer.
  ///
  /// Every object lies between the header and the offset table. Each use of a reference counts
  /// towards the limit on objects, so the expansion of a small file is bounded.
  struct BinaryReader {
    static let magic = Array("bplist0".utf8)
    private static let headerSize = 8
    private static let trailerSize = 32

    private let bytes: [UInt8]
    private let limits: PropertyList.Limits
    private let offsetSize: Int
    private let referenceSize: Int
    private let count: Int
    private let top: Int
    /// The offset of the offset table, which is the end of the objects.
    private let tableStart: Int

    private var objects = 0
    /// The arrays and dictionaries that contain the current one.
    private var around: [Int] = []
    /// The strings and data already read, stored once even if referenced repeatedly.
    private var leaves: [Int: PropertyList] = [:]

    init(_ bytes: [UInt8], limits: PropertyList.Limits) throws(CodecError) {
      let start = bytes.count - Self.trailerSize
      guard start >= Self.headerSize else { throw Self.failure("it is truncated", bytes.count) }
      func number(_ offset: Int, _ size: Int) -> UInt64 {
        bytes[(start + offset)..<(start + offset + size)].reduce(0) { $0 << 8 | UInt64($1) }
      }
      self.bytes = bytes
      self.limits = limits
      (offsetSize, referenceSize) = (Int(bytes[start + 6]), Int(bytes[start + 7]))
      guard (1...8).contains(offsetSize), (1...8).contains(referenceSize) else {
        throw Self.failure("its trailer contains invalid sizes", start + 6)
      }
      guard let table = Int(exactly: number(24, 8)), table > Self.headerSize, table <= start else {
        throw Self.failure("its offset table is outside the file", start + 24)
      }
      guard let count = Int(exactly: number(8, 8)), count > 0, count <= (start - table) / offsetSize
      else { throw Self.failure("its offset table is truncated", start + 8) }
      guard let top = Int(exactly: number(16, 8)), top < count else {
        throw Self.failure("its first object does not exist", start + 16)
      }
      (self.count, self.top, tableStart) = (count, top, table)
    }

    /// Reads the root value.
    mutating func document() throws(CodecError) -> PropertyList { try object(top) }

    private mutating func object(_ index: Int) throws(CodecError) -> PropertyList {
      let offset = try offset(of: index)
      objects += 1
      if objects > limits.objects {
        throw Self.failure("it has more than \(limits.objects) values", offset, kind: .limit)
      }
      if let leaf = leaves[index] { return leaf }
      let marker = bytes[offset]
      let low = Int(marker & 15)
      switch marker >> 4 {
      case 0 where low == 8 || low == 9: return .bool(low == 9)
      case 1: return try integer(offset, low)
      case 2 where low == 2:
        return .real(Double(Float(bitPattern: UInt32(try unsigned(offset + 1, 4)))))
      case 2 where low == 3: return .real(Double(bitPattern: try unsigned(offset + 1, 8)))
      case 3 where low == 3: return .date(Double(bitPattern: try unsigned(offset + 1, 8)))
      case 4, 5, 6: return try leaf(index, offset)
      case 8 where low < 8: return .uid(try unsigned(offset + 1, low + 1))
      case 10, 13: return try container(index, offset, isDictionary: marker >> 4 == 13)
      default:
        throw Self.failure("an object of unknown type 0x\(String(marker, radix: 16))", offset)
      }
    }

    private func integer(_ offset: Int, _ power: Int) throws(CodecError) -> PropertyList {
      switch power {
      case 0...2: return .integer(Int64(try unsigned(offset + 1, 1 << power)))
      case 3: return .integer(Int64(bitPattern: try unsigned(offset + 1, 8)))
      case 4:
        let (high, lower) = (try unsigned(offset + 1, 8), try unsigned(offset + 9, 8))
        let signed = Int64(bitPattern: lower)
        if high == 0 { return signed >= 0 ? .integer(signed) : .unsigned(lower) }
        if high == .max, signed < 0 { return .integer(signed) }
      default: break
      }
      throw Self.failure("an integer of more than 64 bits", offset)
    }

    private mutating func leaf(_ index: Int, _ offset: Int) throws(CodecError) -> PropertyList {
      let kind = bytes[offset] >> 4
      let (start, length) = try length(offset)
      let content = try bytes[range(start, length, unit: kind == 6 ? 2 : 1, of: offset)]
      let value: PropertyList
      switch kind {
      case 4: value = .data(Array(content))
      case 5 where content.allSatisfy { $0 < 0x80 }:
        value = .string(String(decoding: content, as: UTF8.self))
      case 6:
        let units = stride(from: content.startIndex, to: content.endIndex, by: 2).map {
          UInt16(content[$0]) << 8 | UInt16(content[$0 + 1])
        }
        guard let text = String(validating: units, as: UTF16.self) else {
          throw Self.failure("a string that is not valid UTF-16", offset)
        }
        value = .string(text)
      default: throw Self.failure("a string that is not ASCII", offset)
      }
      leaves[index] = value
      return value
    }

    private mutating func container(
      _ index: Int, _ offset: Int, isDictionary: Bool
    ) throws(CodecError) -> PropertyList {
      guard !around.contains(index) else {
        throw Self.failure("an object that contains itself", offset)
      }
      guard around.count < limits.depth else {
        throw Self.failure(
          "it is nested more than \(limits.depth) levels deep", offset, kind: .limit)
      }
      around.append(index)
      defer { around.removeLast() }
      let (start, length) = try length(offset)
      let unit = isDictionary ? 2 * referenceSize : referenceSize
      _ = try range(start, length, unit: unit, of: offset)
      if !isDictionary {
        var elements: [PropertyList] = []
        for item in 0..<length {
          elements.append(try object(try reference(start + item * referenceSize)))
        }
        return .array(elements)
      }
      var members = MemberCollector()
      for item in 0..<length {
        let key = try object(try reference(start + item * referenceSize))
        guard case .string(let name) = key else {
          throw Self.failure("a key of type \(key.kind), not string", offset)
        }
        members.add(name, try object(try reference(start + (length + item) * referenceSize)))
      }
      return .dictionary(members.members)
    }

    // MARK: - Offsets and lengths

    private func offset(of index: Int) throws(CodecError) -> Int {
      let entry = tableStart + index * offsetSize
      let value = bytes[entry..<(entry + offsetSize)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      guard let offset = Int(exactly: value), offset >= Self.headerSize, offset < tableStart else {
        throw Self.failure("an object's offset is outside the objects", entry)
      }
      return offset
    }

    private func reference(_ offset: Int) throws(CodecError) -> Int {
      guard let index = Int(exactly: try unsigned(offset, referenceSize)), index < count else {
        throw Self.failure("a reference to an object that does not exist", offset)
      }
      return index
    }

    /// Returns the start of an object's content and its length, from the marker or the integer
    /// after it.
    private func length(_ offset: Int) throws(CodecError) -> (start: Int, length: Int) {
      let short = Int(bytes[offset] & 15)
      if short < 15 { return (offset + 1, short) }
      let marker = try unsigned(offset + 1, 1)
      guard marker >= 0x10, marker <= 0x13 else { throw Self.failure("an invalid length", offset) }
      let size = 1 << Int(marker & 15)
      guard let length = Int(exactly: try unsigned(offset + 2, size)) else {
        throw Self.failure("an invalid length", offset)
      }
      return (offset + 2 + size, length)
    }

    private func range(
      _ start: Int, _ length: Int, unit: Int, of offset: Int
    ) throws(CodecError) -> Range<Int> {
      guard start <= tableStart, length <= (tableStart - start) / unit else {
        throw Self.failure("an object that extends beyond the objects", offset)
      }
      return start..<(start + length * unit)
    }

    private func unsigned(_ offset: Int, _ size: Int) throws(CodecError) -> UInt64 {
      guard offset <= tableStart - size else {
        throw Self.failure("an object that extends beyond the objects", offset)
      }
      return bytes[offset..<(offset + size)].reduce(0) { $0 << 8 | UInt64($1) }
    }

    private static func failure(
      _ reason: String, _ offset: Int, kind: CodecError.Kind = .malformed
    ) -> CodecError {
      CodecError(kind, in: .propertyList, reason: reason, at: .offset(offset))
    }
  }

}
