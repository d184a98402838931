extension CBORDecoder {
  /// Reads an unsigned integer.
  package mutating func unsigned() throws(CodecError) -> UInt64 {
    willRead()
    return try argument(.unsigned, "an unsigned integer")
  }

  /// Reads an integer of at most 64 bits with sign.
  package mutating func integer() throws(CodecError) -> Int64 {
    willRead()
    return try signed("an integer")
  }

  /// Reads a Boolean.
  package mutating func bool() throws(CodecError) -> Bool {
    willRead()
    guard try kind() == .bool else { throw failure("true or false is expected") }
    position += 1
    return source[position - 1] == CBORHead.true
  }

  /// Reads null if it is next. Returns whether it was.
  package mutating func null() throws(CodecError) -> Bool {
    guard try kind() == .null else { return false }
    willRead()
    position += 1
    return true
  }

  /// Reads a byte string of at most `limit` bytes.
  package mutating func bytes(limit: Int = .max) throws(CodecError) -> [UInt8] {
    Array(source[try byteRange(limit: limit)])
  }

  /// Reads a byte string of at most `limit` bytes as a slice of the decoder's bytes.
  package mutating func slice(limit: Int = .max) throws(CodecError) -> ArraySlice<UInt8> {
    source[try byteRange(limit: limit)]
  }

  /// Reads a byte string of at most `limit` bytes and returns its range in the decoder's bytes.
  package mutating func byteRange(limit: Int = .max) throws(CodecError) -> Range<Int> {
    willRead()
    return try string(.bytes, expecting: "a byte string", limit: limit)
  }

  /// Reads a digest: a byte string of 32 bytes.
  package mutating func digest() throws(CodecError) -> Digest {
    let begin = position
    let range = try byteRange()
    guard let digest = Digest(source.span.extracting(range)) else {
      throw failure("a digest of \(range.count) bytes", at: begin)
    }
    return digest
  }

  /// Reads a byte string of at most 32 bytes as a digest, or nil if it is shorter.
  package mutating func wholeDigest() throws(CodecError) -> Digest? {
    let range = try byteRange(limit: Digest.byteCount)
    return Digest(source.span.extracting(range))
  }

  /// Reads a text string of at most `limit` bytes, which must be valid UTF-8.
  package mutating func text(limit: Int = .max) throws(CodecError) -> String {
    willRead()
    let range = try string(.text, expecting: "a text string", limit: limit)
    guard let text = UTF8Check.string(source.span.extracting(range)) else {
      throw failure("not valid UTF-8", at: range.lowerBound)
    }
    return text
  }

  /// Skips the next item of any kind, validating it.
  package mutating func skip() throws(CodecError) { _ = try itemRange() }

  /// Reads the next item of any kind, validating it, and returns its encoded bytes.
  package mutating func item() throws(CodecError) -> [UInt8] { Array(source[try itemRange()]) }

  private mutating func itemRange() throws(CodecError) -> Range<Int> {
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
      while try nextElement() { _ = try itemRange() }
    case .map:
      try beginMap()
      while try nextKey() != nil { _ = try itemRange() }
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
