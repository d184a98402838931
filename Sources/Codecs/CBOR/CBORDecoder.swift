/// Decodes one item of deterministic CBOR (RFC 8949, section 4.2.1) and refuses all other input.
///
/// Refused, with the byte offset: numbers and lengths that are not in their shortest form,
/// indefinite lengths, map keys that are not integers, out of order or duplicate, tags, fractions,
/// data after the item, and more levels than allowed. Lengths are checked against the remaining
/// input before memory is allocated.
/// The caller requests the items it expects, in order:
/// ```
/// try decoder.beginMap()
/// while let key = try decoder.nextKey() {
///   switch key {
///   case 0: name = try decoder.bytes()
///   default: try decoder.skip()
///   }
/// }
/// try decoder.finish()
/// ```
public struct CBORDecoder: Sendable {
  let source: [UInt8]
  let start: Int
  let end: Int
  let depthLimit: Int
  var position: Int
  /// The innermost open container, if `depth` is not 0. It is updated for each value and therefore
  /// not stored in the array.
  var top = Container(isMap: false, remaining: 0)
  /// The containers around it, the outermost first.
  var outer: [Container] = []
  /// The number of open containers.
  var depth = 0

  struct Container: Sendable {
    let isMap: Bool
    /// The number of elements or keys not yet requested.
    var remaining: Int
    var lastKey: CBORHead.Key?
    /// Whether an element or a key's value has been announced and not yet read.
    var owesValue = false
  }

  /// Creates a decoder of bytes, or of a range of them, which must be one item with at most
  /// `depthLimit` levels of arrays and maps.
  public init(_ bytes: [UInt8], range: Range<Int>? = nil, depthLimit: Int = 32) {
    source = bytes
    start = range?.lowerBound ?? 0
    end = range?.upperBound ?? bytes.count
    precondition(start >= 0 && end <= bytes.count, "the range exceeds the bytes")
    position = start
    self.depthLimit = depthLimit
  }

  /// The kind of an item.
  public enum Kind: Sendable, Hashable {
    case unsigned
    case negative
    case bytes
    case text
    case array
    case map
    case bool
    case null
  }

  /// The number of bytes read.
  public var offset: Int { position - start }

  /// Returns the kind of the next item without reading it.
  public func kind() throws(CodecError) -> Kind {
    guard position < end else { throw failure("an item is expected", .truncated) }
    switch source[position] >> 5 {
    case 0: return .unsigned
    case 1: return .negative
    case 2: return .bytes
    case 3: return .text
    case 4: return .array
    case 5: return .map
    case 6: throw failure("tags are not accepted", .unsupported)
    default: break
    }
    switch source[position] {
    case CBORHead.true, CBORHead.false: return .bool
    case CBORHead.null: return .null
    default: throw failure("neither true, false nor null", .unsupported)
    }
  }

  /// Checks that the item is complete and that no data follows it.
  public func finish() throws(CodecError) {
    precondition(depth == 0, "an array or map has not been read to its end")
    guard position == end else { throw failure("data follows the item") }
  }

  func failure(
    _ reason: String, _ kind: CodecError.Kind = .malformed, at offset: Int? = nil
  ) -> CodecError {
    CodecError(kind, in: .cbor, reason: reason, at: .offset((offset ?? position) - start))
  }
}

// MARK: - Items

extension CBORDecoder {
  /// Reads an unsigned integer.
  public mutating func unsigned() throws(CodecError) -> UInt64 {
    willRead()
    return try argument(.unsigned, "an unsigned integer")
  }

  /// Reads an integer of at most 64 bits with sign.
  public mutating func integer() throws(CodecError) -> Int64 {
    willRead()
    return try signed("an integer")
  }

  /// Reads a Boolean.
  public mutating func bool() throws(CodecError) -> Bool {
    willRead()
    guard try kind() == .bool else { throw failure("true or false is expected") }
    position += 1
    return source[position - 1] == CBORHead.true
  }

  /// Reads null if it is next. Returns whether it was.
  public mutating func null() throws(CodecError) -> Bool {
    guard try kind() == .null else { return false }
    willRead()
    position += 1
    return true
  }

  /// Reads a byte string of at most `limit` bytes.
  public mutating func bytes(limit: Int = .max) throws(CodecError) -> [UInt8] {
    Array(source[try byteRange(limit: limit)])
  }

  /// Reads a byte string of at most `limit` bytes as a slice of the decoder's bytes.
  public mutating func slice(limit: Int = .max) throws(CodecError) -> ArraySlice<UInt8> {
    source[try byteRange(limit: limit)]
  }

  /// Reads a byte string of at most `limit` bytes and returns its range in the decoder's bytes.
  public mutating func byteRange(limit: Int = .max) throws(CodecError) -> Range<Int> {
    willRead()
    return try string(.bytes, expecting: "a byte string", limit: limit)
  }

  /// Reads a byte string of at most 32 bytes as a digest, or nil if it is shorter.
  public mutating func wholeDigest() throws(CodecError) -> Digest? {
    let range = try byteRange(limit: Digest.byteCount)
    return Digest(source.span.extracting(range))
  }

  /// Reads a text string of at most `limit` bytes, which must be valid UTF-8.
  public mutating func text(limit: Int = .max) throws(CodecError) -> String {
    willRead()
    let range = try string(.text, expecting: "a text string", limit: limit)
    guard let text = InputText.string(source.span.extracting(range)) else {
      throw failure("not valid UTF-8", at: range.lowerBound)
    }
    return text
  }

  /// Reads the next item of any kind, validating it, and returns its encoded bytes.
  public mutating func item() throws(CodecError) -> [UInt8] { Array(source[try skip()]) }

  /// Skips the next item without reading it. The caller knows that it is valid and has this number
  /// of bytes, for example because an equal one was read before.
  public mutating func skip(byteCount: Int) {
    precondition(byteCount > 0 && byteCount <= end - position, "the item exceeds the bytes")
    willRead()
    position += byteCount
  }

  /// Skips the next item of any kind, validating it, and returns its range in the decoder's bytes.
  @discardableResult
  public mutating func skip() throws(CodecError) -> Range<Int> {
    let begin = position
    switch try kind() {
    case .unsigned: _ = try unsigned()
    case .negative:
      willRead()
      _ = try argument(.negative, "an integer")
    case .bytes: _ = try byteRange()
    case .text: _ = try text()
    case .bool: _ = try bool()
    case .null: _ = try null()
    case .array:
      try beginArray()
      while try nextElement() { try skip() }
    case .map:
      try beginMap()
      while try nextKey() != nil { try skip() }
    }
    return begin..<position
  }

  // MARK: - Heads

  /// Marks the announced element or value of the innermost container as read.
  mutating func willRead() {
    guard depth > 0 else {
      precondition(position == start, "one item only")
      return
    }
    precondition(top.owesValue, "no value is due")
    top.owesValue = false
  }

  mutating func signed(_ expected: String) throws(CodecError) -> Int64 {
    let begin = position
    let isNegative = try kind() == .negative
    let value = try argument(isNegative ? .negative : .unsigned, expected)
    guard let magnitude = Int64(exactly: value) else {
      throw failure("an integer exceeds 64 bits", .unsupported, at: begin)
    }
    return isNegative ? ~magnitude : magnitude
  }

  private mutating func string(
    _ major: CBORHead.Major, expecting expected: String, limit: Int
  ) throws(CodecError) -> Range<Int> {
    let begin = position
    let count = try argument(major, expected)
    guard count <= UInt64(end - position) else {
      throw failure(
        "\(expected) of \(count) bytes exceeds the remaining input", .truncated, at: begin)
    }
    guard count <= UInt64(limit) else {
      throw failure(
        "\(expected) of \(count) bytes exceeds the limit of \(limit)", .limit, at: begin)
    }
    position += Int(count)
    return (position - Int(count))..<position
  }

  /// Reads a head of the given major type and returns its argument.
  mutating func argument(
    _ major: CBORHead.Major, _ expected: String
  ) throws(CodecError) -> UInt64 {
    guard position < end else { throw failure("\(expected) is expected", .truncated) }
    let first = source[position]
    guard first >> 5 == major.rawValue else { throw failure("\(expected) is expected") }
    let information = first & 31
    if information < 24 {
      position += 1
      return UInt64(information)
    }
    guard information < 28 else {
      throw failure("indefinite lengths are not accepted", .unsupported)
    }
    let width = 1 << Int(information - 24)
    guard end - position > width else { throw failure("a number is truncated", .truncated) }
    var value: UInt64 = 0
    for index in 1...width { value = value << 8 | UInt64(source[position + index]) }
    let least: UInt64 = width == 1 ? 24 : 1 << UInt64(4 * width)
    guard value >= least else { throw failure("a number is not in its shortest form") }
    position += 1 + width
    return value
  }
}

// MARK: - Arrays and maps

extension CBORDecoder {
  /// Opens an array and returns its number of elements. Call `nextElement()` before each.
  @discardableResult
  public mutating func beginArray() throws(CodecError) -> Int {
    willRead()
    return try begin(.array, "an array", bytesEach: 1)
  }

  /// Whether the innermost array has another element, which must then be read. Closes the array at
  /// its end.
  public mutating func nextElement() throws(CodecError) -> Bool {
    precondition(depth > 0 && !top.isMap, "no array is open")
    precondition(!top.owesValue, "the previous element has not been read")
    guard top.remaining > 0 else {
      close()
      return false
    }
    top.remaining -= 1
    top.owesValue = true
    return true
  }

  /// Opens a map and returns its number of entries. Call `nextKey()` before each.
  @discardableResult
  public mutating func beginMap() throws(CodecError) -> Int {
    willRead()
    return try begin(.map, "a map", bytesEach: 2)
  }

  /// Returns the next key of the innermost map, whose value must then be read, or nil at the end of
  /// the map, which closes it.
  public mutating func nextKey() throws(CodecError) -> Int64? {
    precondition(depth > 0 && top.isMap, "no map is open")
    precondition(!top.owesValue, "the previous value has not been read")
    guard top.remaining > 0 else {
      close()
      return nil
    }
    let begin = position
    let value = try signed("an integer as key")
    let key = CBORHead.Key(value)
    if let lastKey = top.lastKey, !(lastKey < key) {
      throw failure(lastKey == key ? "duplicate key" : "keys out of order", at: begin)
    }
    top.lastKey = key
    top.remaining -= 1
    top.owesValue = true
    return value
  }

  private mutating func begin(
    _ major: CBORHead.Major, _ expected: String, bytesEach: Int
  ) throws(CodecError) -> Int {
    let begin = position
    guard depth < depthLimit else {
      throw failure("more than \(depthLimit) levels deep", .limit)
    }
    let count = try argument(major, expected)
    guard count <= UInt64((end - position) / bytesEach) else {
      throw failure(
        "\(expected) of \(count) items exceeds the remaining input", .truncated, at: begin)
    }
    if depth > 0 { outer.append(top) }
    top = Container(isMap: major == .map, remaining: Int(count))
    depth += 1
    return Int(count)
  }

  private mutating func close() {
    depth -= 1
    if depth > 0 { top = outer.removeLast() }
  }
}
