extension CBORDecoder {
  /// Opens an array and gives the count of its elements; each is announced by `nextElement()`.
  @discardableResult
  public mutating func beginArray() throws(CodecError) -> Int {
    willRead()
    return try begin(.array, "an array", bytesEach: 1)
  }

  /// Whether there is another element in the array that was opened last, which must then be read.
  /// The array is closed when there is none.
  public mutating func nextElement() throws(CodecError) -> Bool {
    precondition(depth > 0 && !top.isMap, "no array is open")
    precondition(!top.owesValue, "the element before has not been read")
    guard top.remaining > 0 else {
      close()
      return false
    }
    top.remaining -= 1
    top.owesValue = true
    return true
  }

  /// Opens a map and gives the count of its keys; each is read by `nextKey()`.
  @discardableResult
  public mutating func beginMap() throws(CodecError) -> Int {
    willRead()
    return try begin(.map, "a map", bytesEach: 2)
  }

  /// The next key in the map that was opened last, whose value must then be read. The map is closed
  /// when there is none.
  public mutating func nextKey() throws(CodecError) -> Int64? {
    precondition(depth > 0 && top.isMap, "no map is open")
    precondition(!top.owesValue, "the value before has not been read")
    guard top.remaining > 0 else {
      close()
      return nil
    }
    let begin = position
    let value = try signed("an integer as key")
    let key = CBORKey(value)
    if let lastKey = top.lastKey, !(lastKey < key) {
      throw failure(lastKey == key ? "a key comes twice" : "keys out of order", at: begin)
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
      throw failure("\(expected) of \(count), more than are left", .truncated, at: begin)
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
