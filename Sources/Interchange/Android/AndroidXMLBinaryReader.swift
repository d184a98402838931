internal import Codecs

/// Reads the binary form of XML in an APK: a sequence of chunks, the first of which has all
/// strings.
///
/// Chunks must be within the file, and numbers of strings within their pool; each chunk is read
/// once, so the time is proportional to the size. Strings are decoded when they are used.
///
/// Source: AOSP, `ResourceTypes.h` (`ResXMLTree_…`, `ResStringPool_header`).
struct AndroidXMLBinaryReader {
  private let bytes: [UInt8]
  private var builder = AndroidXMLBuilder()
  private var strings: AndroidStringPool?
  /// The numbers of attributes in Android's resources, by the number of their names.
  private var resources: AndroidChunk?

  private static let noString = UInt32.max

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Returns the root element.
  mutating func document() throws(CodecError) -> AndroidXML {
    let file = try chunk(at: 0, before: bytes.count)
    var position = file.data
    while position < file.end {
      let next = try chunk(at: position, before: file.end)
      try read(next)
      position = next.end
    }
    return try builder.finish(at: .offset(file.end))
  }

  private mutating func read(_ chunk: AndroidChunk) throws(CodecError) {
    switch chunk.type {
    case AndroidChunk.Kind.strings:
      if strings == nil {
        strings = try AndroidStringPool(chunk, of: bytes, in: .androidXML)
      }
    case AndroidChunk.Kind.attributeNumbers: resources = chunk
    case AndroidChunk.Kind.startElement: try readStart(chunk)
    case AndroidChunk.Kind.endElement:
      try require(8, from: chunk.data, in: chunk)
      let name = try string(number32(chunk.data + 4), at: chunk.start) ?? ""
      try builder.end(name, at: .offset(chunk.start))
    // Starts and ends of namespaces, text, and what later versions add.
    default: break
    }
  }

  // MARK: - Elements

  private mutating func readStart(_ chunk: AndroidChunk) throws(CodecError) {
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
    guard let resources else { return nil }
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

  private func chunk(at position: Int, before end: Int) throws(CodecError) -> AndroidChunk {
    try AndroidChunk(at: position, before: end, of: bytes, in: .androidXML)
  }

  private func require(_ count: Int, from position: Int, in chunk: AndroidChunk) throws(CodecError)
  {
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
