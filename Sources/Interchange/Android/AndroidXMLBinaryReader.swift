internal import Codecs

/// Reads the binary form of XML in an APK: a sequence of chunks, of which the first one has all
/// strings.
///
/// Chunks must be within the file, and numbers of strings within their pool; each chunk is read
/// once, so the time is proportional to the size. Strings are decoded when they are used.
///
/// Source: AOSP, `ResourceTypes.h` (`ResXMLTree_…`, `ResStringPool_header`).
struct AndroidXMLBinaryReader {
  private let bytes: [UInt8]
  private var builder = AndroidXMLBuilder()
  private var strings: StringPool?
  /// The numbers of attributes in Android's resources, by the number of their names.
  private var resources = Chunk(start: 0, header: 0, size: 0)

  private static let noString = UInt32.max

  /// A chunk: its header and its data.
  struct Chunk {
    let start: Int
    let header: Int
    let size: Int

    var end: Int { start + size }
    var data: Int { start + header }
  }

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Returns the root element.
  mutating func document() throws(CodecError) -> AndroidXML {
    let file = try chunk(at: 0, before: bytes.count)
    var position = file.data
    while position < file.end {
      let next = try chunk(at: position, before: file.end)
      try read(next, of: number16(position))
      position = next.end
    }
    return try builder.finish(at: .offset(file.end))
  }

  private mutating func read(_ chunk: Chunk, of type: UInt16) throws(CodecError) {
    switch type {
    case 0x0001:
      if strings == nil { strings = try StringPool(chunk, of: bytes) }
    case 0x0180: resources = chunk
    case 0x0102: try readStart(chunk)
    case 0x0103:
      try require(8, from: chunk.data, in: chunk)
      let name = try string(number32(chunk.data + 4), at: chunk.start) ?? ""
      try builder.end(name, at: .offset(chunk.start))
    // Starts and ends of namespaces, text, and what later versions add.
    default: break
    }
  }

  // MARK: - Elements

  private mutating func readStart(_ chunk: Chunk) throws(CodecError) {
    try require(20, from: chunk.data, in: chunk)
    guard let name = try string(number32(chunk.data + 4), at: chunk.start) else {
      throw fault("an element has no name", at: chunk.start)
    }
    let size = Int(number16(chunk.data + 10))
    let count = Int(number16(chunk.data + 12))
    var position = chunk.data + Int(number16(chunk.data + 8))
    guard size >= 20 || count == 0 else {
      throw fault("attributes have \(size) bytes", at: position)
    }
    var element = AndroidXML(name: name, attributes: [], position: .offset(chunk.start))
    for _ in 0..<count {
      try require(size, from: position, in: chunk)
      element.attributes.append(try attribute(at: position))
      position += size
    }
    try builder.begin(element)
  }

  private mutating func attribute(at position: Int) throws(CodecError) -> AndroidXML.Attribute {
    try builder.countAttribute(at: .offset(position))
    let number = number32(position + 4)
    return AndroidXML.Attribute(
      namespace: try string(number32(position), at: position) ?? "",
      name: try string(number, at: position) ?? "", value: try value(at: position),
      resource: resource(number))
  }

  /// Returns the number of an attribute in Android's resources by the number of its name.
  private func resource(_ number: UInt32) -> UInt32? {
    let (room, index) = (resources.size - resources.header, Int(number))
    guard index < room / 4 else { return nil }
    let resource = number32(resources.data + 4 * index)
    return resource == 0 ? nil : resource
  }

  /// Returns the text of a value: the developer's, or that of a typed value (`Res_value`).
  private mutating func value(at position: Int) throws(CodecError) -> String {
    if let raw = try string(number32(position + 8), at: position) { return raw }
    let data = number32(position + 16)
    switch bytes[position + 15] {
    case 0x01, 0x07: return "@0x" + String(data, radix: 16)
    case 0x03: return try string(data, at: position) ?? ""
    case 0x10: return "\(Int32(bitPattern: data))"
    case 0x11: return "0x" + String(data, radix: 16)
    case 0x12: return data == 0 ? "false" : "true"
    default: return ""
    }
  }

  private mutating func string(_ number: UInt32, at position: Int) throws(CodecError) -> String? {
    if number == Self.noString { return nil }
    guard let strings else { throw fault("its strings are missing", at: position) }
    let text = try strings.string(Int(number), of: bytes)
    try builder.count(text, at: .offset(position))
    return text
  }

  // MARK: - Numbers

  private func chunk(at position: Int, before end: Int) throws(CodecError) -> Chunk {
    guard end - position >= 8 else { throw fault("a chunk is truncated", at: position) }
    let chunk = Chunk(
      start: position, header: Int(number16(position + 2)), size: Int(number32(position + 4)))
    guard chunk.header >= 8, chunk.header <= chunk.size, chunk.size <= end - position else {
      throw fault("a chunk claims \(chunk.size) bytes", at: position)
    }
    return chunk
  }

  private func require(_ count: Int, from position: Int, in chunk: Chunk) throws(CodecError) {
    guard position >= chunk.start, count <= chunk.end - position else {
      throw fault("an element extends beyond its chunk", at: chunk.start)
    }
  }

  private func number16(_ position: Int) -> UInt16 {
    LittleEndian.integer(bytes.span, at: position)
  }

  private func number32(_ position: Int) -> UInt32 {
    LittleEndian.integer(bytes.span, at: position)
  }

  private func fault(_ reason: String, at position: Int) -> CodecError {
    CodecError(.malformed, in: .androidXML, reason: reason, at: .offset(position))
  }
}

extension AndroidXMLBinaryReader {
  /// The strings of a file, in UTF-8 or UTF-16, each after its length and with a terminating NUL.
  private struct StringPool {
    private let chunk: Chunk
    private let count: Int
    private let isUTF8: Bool
    /// The position of the first string.
    private let start: Int

    private static let headerSize = 28
    private static let utf8Flag: UInt32 = 1 << 8

    init(_ chunk: Chunk, of bytes: [UInt8]) throws(CodecError) {
      self.chunk = chunk
      guard chunk.header >= Self.headerSize else { throw Self.fault(chunk.start) }
      let span = bytes.span
      let count: UInt32 = LittleEndian.integer(span, at: chunk.start + 8)
      let flags: UInt32 = LittleEndian.integer(span, at: chunk.start + 16)
      let offset: UInt32 = LittleEndian.integer(span, at: chunk.start + 20)
      guard Int(count) <= (chunk.size - chunk.header) / 4, count == 0 || Int(offset) < chunk.size
      else { throw Self.fault(chunk.start) }
      self.count = Int(count)
      isUTF8 = flags & Self.utf8Flag != 0
      start = chunk.start + Int(offset)
    }

    /// Returns a string by its number.
    func string(_ number: Int, of bytes: [UInt8]) throws(CodecError) -> String {
      guard number < count else { throw Self.fault(chunk.start) }
      let offset: UInt32 = LittleEndian.integer(bytes.span, at: chunk.data + 4 * number)
      guard Int(offset) < chunk.end - start else { throw Self.fault(chunk.start) }
      var rest = bytes[(start + Int(offset))..<chunk.end]
      return isUTF8 ? try Self.utf8(&rest) : try Self.utf16(&rest)
    }

    /// The length in UTF-16 comes first and is not needed.
    private static func utf8(_ rest: inout ArraySlice<UInt8>) throws(CodecError) -> String {
      let position = rest.startIndex
      func length() -> Int? {
        guard let first = rest.popFirst() else { return nil }
        guard first & 0x80 != 0 else { return Int(first) }
        return rest.popFirst().map { Int(first & 0x7f) << 8 | Int($0) }
      }
      guard length() != nil, let count = length(), count <= rest.count,
        let text = String(validating: rest.prefix(count), as: UTF8.self)
      else { throw fault(position) }
      return text
    }

    private static func utf16(_ rest: inout ArraySlice<UInt8>) throws(CodecError) -> String {
      let position = rest.startIndex
      func unit() -> UInt16? {
        guard let low = rest.popFirst(), let high = rest.popFirst() else { return nil }
        return UInt16(high) << 8 | UInt16(low)
      }
      guard let first = unit() else { throw fault(position) }
      var count = Int(first)
      if first & 0x8000 != 0 {
        guard let low = unit() else { throw fault(position) }
        count = Int(first & 0x7fff) << 16 | Int(low)
      }
      guard count <= rest.count / 2 else { throw fault(position) }
      let units = (0..<count).compactMap { _ in unit() }
      guard let text = String(validating: units, as: UTF16.self) else { throw fault(position) }
      return text
    }

    private static func fault(_ position: Int) -> CodecError {
      CodecError(
        .malformed, in: .androidXML, reason: "its strings are damaged", at: .offset(position))
    }
  }
}
