extension CBORDecoder {
  /// Opens an array and returns its number of elements. Call `nextElement()` before each.
  @discardableResult
  package mutating func beginArray() throws(CodecError) -> Int {
    willRead()
    return try begin(.array, "an array", bytesEach: 1)
  }

  /// Whether the innermost array has another element, which must then be read. Closes the array at
  /// its end.
  package mutating func nextElement() throws(CodecError) -> Bool {
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
  package mutating func beginMap() throws(CodecError) -> Int {
    willRead()
    return try begin(.map, "a map", bytesEach: 2)
  }

  /// Returns the next key of the innermost map, whose value must then be read, or nil at the end of
  /// the map, which closes it.
  package mutating func nextKey() throws(CodecError) -> Int64? {
    precondition(depth > 0 && top.isMap, "no map is open")
    precondition(!top.owesValue, "the previous value has not been read")
    guard top.remaining > 0 else {
      close()
      return nil
    }
    let begin = position
    let value = try signed("an integer as key")
    let key = CBORKey(value)
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
