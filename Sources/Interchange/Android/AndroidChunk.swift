internal import Codecs

/// A chunk of a binary file in an APK: its header and its data.
///
/// Source: AOSP, `ResourceTypes.h` (`ResChunk_header`).
struct AndroidChunk: Hashable, Sendable {
  let type: UInt16
  let start: Int
  /// The size of the header in bytes, at least 8.
  let header: Int
  /// The size with the header in bytes.
  let size: Int

  var end: Int { start + size }
  var data: Int { start + header }

  /// Reads the header of a chunk.
  ///
  /// - Throws: `malformed` if the chunk is not within the bytes before `end`.
  init(
    at position: Int, before end: Int, of bytes: [UInt8], in format: CodecError.Format
  ) throws(CodecError) {
    func fault(_ reason: String) -> CodecError {
      CodecError(.malformed, in: format, reason: reason, at: .offset(position))
    }
    guard end - position >= 8 else { throw fault("a chunk is truncated") }
    let span = bytes.span
    type = LittleEndian.integer(span, at: position)
    start = position
    header = Int(LittleEndian.integer(span, at: position + 2, as: UInt16.self))
    size = Int(LittleEndian.integer(span, at: position + 4, as: UInt32.self))
    guard header >= 8, header <= size, size <= end - position else {
      throw fault("a chunk claims \(size) bytes")
    }
  }

  /// The types of chunks.
  enum Kind {
    static let strings: UInt16 = 0x0001
    static let table: UInt16 = 0x0002
    static let xml: UInt16 = 0x0003
    static let startElement: UInt16 = 0x0102
    static let endElement: UInt16 = 0x0103
    static let attributeNumbers: UInt16 = 0x0180
    static let package: UInt16 = 0x0200
    static let values: UInt16 = 0x0201
  }
}

/// The strings of a binary file in an APK, in UTF-8 or UTF-16, each after its length and with a
/// terminating NUL. They are decoded when they are used.
///
/// Source: AOSP, `ResourceTypes.h` (`ResStringPool_header`).
struct AndroidStringPool: Sendable {
  private let chunk: AndroidChunk
  private let format: CodecError.Format
  private let count: Int
  private let isUTF8: Bool
  /// The position of the first string.
  private let start: Int

  private static let headerSize = 28
  private static let utf8Flag: UInt32 = 1 << 8

  /// Reads the header of the strings.
  init(
    _ chunk: AndroidChunk, of bytes: [UInt8], in format: CodecError.Format
  ) throws(CodecError) {
    (self.chunk, self.format) = (chunk, format)
    guard chunk.header >= Self.headerSize else { throw Self.fault(chunk.start, format) }
    let span = bytes.span
    let count: UInt32 = LittleEndian.integer(span, at: chunk.start + 8)
    let flags: UInt32 = LittleEndian.integer(span, at: chunk.start + 16)
    let offset: UInt32 = LittleEndian.integer(span, at: chunk.start + 20)
    guard Int(count) <= (chunk.size - chunk.header) / 4, count == 0 || Int(offset) < chunk.size
    else { throw Self.fault(chunk.start, format) }
    self.count = Int(count)
    isUTF8 = flags & Self.utf8Flag != 0
    start = chunk.start + Int(offset)
  }

  /// Returns a string by its number.
  func string(_ number: Int, of bytes: [UInt8]) throws(CodecError) -> String {
    guard number < count else { throw fault(chunk.start) }
    let offset: UInt32 = LittleEndian.integer(bytes.span, at: chunk.data + 4 * number)
    guard Int(offset) < chunk.end - start else { throw fault(chunk.start) }
    var rest = bytes[(start + Int(offset))..<chunk.end]
    return isUTF8 ? try utf8(&rest) : try utf16(&rest)
  }

  /// The length in UTF-16 comes first and is not needed.
  private func utf8(_ rest: inout ArraySlice<UInt8>) throws(CodecError) -> String {
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

  private func utf16(_ rest: inout ArraySlice<UInt8>) throws(CodecError) -> String {
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

  private func fault(_ position: Int) -> CodecError { Self.fault(position, format) }

  private static func fault(_ position: Int, _ format: CodecError.Format) -> CodecError {
    CodecError(.malformed, in: format, reason: "its strings are damaged", at: .offset(position))
  }
}
