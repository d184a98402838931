package import Codecs

/// The table of an APK that gives resources by number: `resources.arsc`.
///
/// It is read as far as a reference to a file, a text or a Boolean value needs: chunks must be
/// within the file, entries within their chunk, and a reference leads to its value over at most
/// `Limit.references` others. Values with parts of their own, such as styles, have no value here.
///
/// Source: AOSP, `ResourceTypes.h` (`ResTable_…`, `Res_value`), `AssetManager2.cpp`
/// (`kMaxIterations`).
package struct AndroidResources: Sendable {
  private let bytes: [UInt8]
  /// The texts of values.
  private let strings: AndroidStringPool?
  /// The chunks with the values of a type of a package, one for each configuration, by the upper 16
  /// bits of the numbers of its resources.
  private var types: [UInt16: [AndroidChunk]] = [:]

  /// The limits of a table, which an app's own do not come near.
  package enum Limit {
    /// The size of the file in bytes.
    package static let bytes = 64 << 20
    /// The number of chunks with values.
    static let chunks = 200_000
    /// The number of references from one resource to the next, as Android has it.
    static let references = 20
  }

  /// The value of a resource.
  package enum Value: Hashable, Sendable {
    /// A text, or the path of a file in the APK.
    case text(String)
    /// An integer; a Boolean value is one that is 0 for false.
    case number(UInt32)
    /// A value of another type.
    case other
  }

  /// Reads the structure of a table.
  ///
  /// - Throws: `malformed`, or `limit`, with the position.
  package init(_ bytes: [UInt8]) throws(CodecError) {
    self.bytes = bytes
    guard bytes.count <= Limit.bytes else {
      throw CodecError(
        .limit, in: Self.format, reason: "it has more than \(Limit.bytes >> 20) MiB")
    }
    let file = try AndroidChunk(at: 0, before: bytes.count, of: bytes, in: Self.format)
    guard file.type == AndroidChunk.Kind.table else {
      throw Self.fault("it is not a table of resources", at: 0)
    }
    var strings: AndroidStringPool?
    var packages: [AndroidChunk] = []
    try Self.forEachChunk(in: file, of: bytes) { chunk throws(CodecError) in
      if chunk.type == AndroidChunk.Kind.strings, strings == nil {
        strings = try AndroidStringPool(chunk, of: bytes, in: Self.format)
      }
      if chunk.type == AndroidChunk.Kind.package { packages.append(chunk) }
    }
    self.strings = strings
    var count = 0
    for package in packages { try addTypes(of: package, count: &count) }
  }

  /// Adds the chunks with values of a package.
  private mutating func addTypes(
    of package: AndroidChunk, count: inout Int
  ) throws(CodecError) {
    guard package.header >= 12 else {
      throw Self.fault("a package has no number", at: package.start)
    }
    let number = number32(package.start + 8)
    // 0 is a shared library, whose numbers are assigned when it is loaded.
    guard (1...0xff).contains(number) else { return }
    var found: [AndroidChunk] = []
    try Self.forEachChunk(in: package, of: bytes) { chunk throws(CodecError) in
      guard chunk.type == AndroidChunk.Kind.values else { return }
      count += 1
      guard count <= Limit.chunks else {
        throw CodecError(
          .limit, in: Self.format, reason: "it has more than \(Limit.chunks) tables of values",
          at: .offset(chunk.start))
      }
      found.append(chunk)
    }
    for chunk in found {
      guard chunk.header >= Self.configuration + 4 else {
        throw Self.fault("a table of values has a short header", at: chunk.start)
      }
      types[UInt16(number) << 8 | UInt16(bytes[chunk.start + 8]), default: []].append(chunk)
    }
  }

  private static func forEachChunk(
    in outer: AndroidChunk, of bytes: [UInt8], _ body: (AndroidChunk) throws(CodecError) -> Void
  ) throws(CodecError) {
    var position = outer.data
    while position < outer.end {
      let chunk = try AndroidChunk(at: position, before: outer.end, of: bytes, in: format)
      try body(chunk)
      position = chunk.end
    }
  }

  // MARK: - Values

  /// Returns the value of a resource, to which references of other resources are followed; nil if
  /// the table has none, as for a resource of the system or of another APK of the app.
  ///
  /// If there are values for different configurations, returns the one for the newest version of
  /// Android that has no other condition, otherwise the first one.
  ///
  /// - Throws: `malformed`; `limit` if the references do not end.
  package func value(of resource: UInt32) throws(CodecError) -> Value? {
    var next = resource
    for _ in 0...Limit.references {
      guard let found = try stored(next) else { return nil }
      switch found.type {
      case 0x01, 0x07: next = found.data
      case 0x03:
        guard let strings else { throw Self.fault("its strings are missing", at: 0) }
        return .text(try strings.string(Int(found.data), of: bytes))
      case 0x10...0x12: return .number(found.data)
      default: return .other
      }
    }
    throw CodecError(
      .limit, in: Self.format,
      reason: "the resource 0x\(String(resource, radix: 16)) refers to others without an end")
  }

  /// A value as the table has it (`Res_value`).
  private struct Stored {
    var type: UInt8
    var data: UInt32
  }

  /// Returns the value of a resource for the configuration that is preferred.
  private func stored(_ resource: UInt32) throws(CodecError) -> Stored? {
    var best: (value: Stored, rank: Int)?
    for chunk in types[UInt16(resource >> 16)] ?? [] {
      guard let value = try stored(Int(resource & 0xffff), in: chunk) else { continue }
      let rank = rank(of: chunk)
      if best == nil || rank > best?.rank ?? 0 { best = (value, rank) }
    }
    return best?.value
  }

  /// The position of the configuration in the header of a table of values.
  private static let configuration = 20
  /// The position of the version in a configuration, after which follow at most the bytes of its
  /// minor version.
  private static let version = 24

  /// Returns the version of Android that a table of values requires; -1 if it has another
  /// condition.
  private func rank(of chunk: AndroidChunk) -> Int {
    let start = chunk.start + Self.configuration
    let size = Int(clamping: number32(start))
    let end = size > chunk.data - start ? chunk.data : start + size
    var version = 0
    for position in (start + 4)..<max(start + 4, end) where bytes[position] != 0 {
      switch position - start {
      case Self.version: version |= Int(bytes[position])
      case Self.version + 1: version |= Int(bytes[position]) << 8
      default: return -1
      }
    }
    return version
  }

  // MARK: - Entries

  /// The flags of a table of values: a list of numbers with positions, or positions of 16 bits.
  private enum TableFlag {
    static let sparse: UInt8 = 1
    static let short: UInt8 = 2
  }

  /// The flags of an entry: one with parts of its own, or one of 8 bytes.
  private enum EntryFlag {
    static let complex: UInt16 = 1
    static let compact: UInt16 = 8
  }

  /// Returns the value of an entry; nil if the table has none.
  private func stored(_ index: Int, in chunk: AndroidChunk) throws(CodecError) -> Stored? {
    guard let offset = try offset(of: index, in: chunk) else { return nil }
    let entries = Int(number32(chunk.start + 16))
    guard entries >= chunk.header, entries <= chunk.size, offset <= chunk.size - entries - 8 else {
      throw Self.fault("a value is beyond its table", at: chunk.start)
    }
    let entry = chunk.start + entries + offset
    let flags = number16(entry + 2)
    if flags & EntryFlag.compact != 0 {
      return Stored(type: UInt8(flags >> 8), data: number32(entry + 4))
    }
    if flags & EntryFlag.complex != 0 { return Stored(type: 0, data: 0) }
    let size = Int(number16(entry))
    guard size >= 8, size <= chunk.end - entry - 8 else {
      throw Self.fault("a value is beyond its table", at: entry)
    }
    return Stored(type: bytes[entry + size + 3], data: number32(entry + size + 4))
  }

  /// Returns the position of an entry after the first one, or nil if there is none.
  private func offset(of index: Int, in chunk: AndroidChunk) throws(CodecError) -> Int? {
    let flags = bytes[chunk.start + 9]
    let count = Int(number32(chunk.start + 12))
    let width = flags & TableFlag.short != 0 && flags & TableFlag.sparse == 0 ? 2 : 4
    guard count <= (chunk.size - chunk.header) / width else {
      throw Self.fault("a table claims \(count) values", at: chunk.start)
    }
    if flags & TableFlag.sparse != 0 { return sparseOffset(of: index, count: count, in: chunk) }
    guard index < count else { return nil }
    if width == 2 {
      let short = number16(chunk.data + 2 * index)
      return short == .max ? nil : 4 * Int(short)
    }
    let offset = number32(chunk.data + 4 * index)
    return offset == .max ? nil : Int(offset)
  }

  /// Returns the position of an entry in a list that is ordered by the numbers of the entries.
  private func sparseOffset(of index: Int, count: Int, in chunk: AndroidChunk) -> Int? {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if Int(number16(chunk.data + 4 * middle)) < index { low = middle + 1 } else { high = middle }
    }
    guard low < count, Int(number16(chunk.data + 4 * low)) == index else { return nil }
    return 4 * Int(number16(chunk.data + 4 * low + 2))
  }

  // MARK: - Numbers

  private static let format = CodecError.Format.androidResources

  private func number16(_ position: Int) -> UInt16 {
    LittleEndian.integer(bytes.span, at: position)
  }

  private func number32(_ position: Int) -> UInt32 {
    LittleEndian.integer(bytes.span, at: position)
  }

  private static func fault(_ reason: String, at position: Int) -> CodecError {
    CodecError(.malformed, in: format, reason: reason, at: .offset(position))
  }
}
