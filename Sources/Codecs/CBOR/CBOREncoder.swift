/// Encodes one item of deterministic CBOR (RFC 8949, section 4.2.1): shortest forms, definite
/// lengths, map keys in order. Keys are integers; tags and fractions are not supported.
///
/// Arrays and maps are opened and closed by calls. The length of one opened without a count is
/// filled in when it is closed. A sequence of calls that does not produce valid CBOR, including
/// keys out of order, is a programming error and traps.
public struct CBOREncoder: Sendable {
  /// The bytes written so far.
  public private(set) var bytes: [UInt8] = []
  private var open: [Container] = []

  /// Creates an encoder that reserves `capacity` bytes.
  public init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

  private struct Container: Sendable {
    var isMap: Bool
    /// The offset of the head to fill in, or nil if it is already final.
    var head: Int?
    /// The number of elements or keys that the head declares.
    var count: Int
    var written = 0
    var lastKey: CBORHead.Key?
    var lacksValue = false
  }

  /// Returns the item. All containers must be closed.
  public consuming func finish() -> [UInt8] {
    precondition(open.isEmpty && !bytes.isEmpty, "the item is incomplete")
    return bytes
  }

  /// Writes an unsigned integer.
  public mutating func unsigned(_ value: UInt64) {
    willWrite()
    head(.unsigned, value)
  }

  /// Writes an integer.
  public mutating func integer(_ value: Int64) {
    willWrite()
    let key = CBORHead.Key(value)
    head(key.isNegative ? .negative : .unsigned, key.argument)
  }

  /// Writes a byte string.
  public mutating func bytes(_ value: Span<UInt8>) {
    willWrite()
    head(.bytes, UInt64(value.count))
    unsafe value.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
  }

  /// Writes a byte string.
  public mutating func bytes(_ value: [UInt8]) { bytes(value.span) }

  /// Writes a byte string.
  public mutating func bytes(_ value: ArraySlice<UInt8>) { bytes(value.span) }

  /// Writes a digest as a byte string.
  public mutating func digest(_ value: Digest) {
    willWrite()
    head(.bytes, UInt64(Digest.byteCount))
    value.append(to: &bytes)
  }

  /// Writes a text string.
  public mutating func text(_ value: String) {
    willWrite()
    head(.text, UInt64(value.utf8.count))
    bytes.append(contentsOf: value.utf8)
  }

  /// Writes a Boolean.
  public mutating func bool(_ value: Bool) {
    willWrite()
    bytes.append(value ? CBORHead.true : CBORHead.false)
  }

  /// Writes null.
  public mutating func null() {
    willWrite()
    bytes.append(CBORHead.null)
  }

  /// Writes an item that is already encoded, for example a result of `CBORDecoder.item()`.
  public mutating func encoded(_ item: some Collection<UInt8>) {
    precondition(!item.isEmpty, "an item has at least one byte")
    willWrite()
    bytes.append(contentsOf: item)
  }

  /// Opens an array. Its elements follow, then `endArray()`.
  public mutating func beginArray(count: Int? = nil) { begin(.array, count) }

  /// Closes the innermost array.
  public mutating func endArray() { end(.array) }

  /// Opens a map. Its keys follow, each with a value, then `endMap()`.
  public mutating func beginMap(count: Int? = nil) { begin(.map, count) }

  /// Closes the innermost map.
  public mutating func endMap() { end(.map) }

  /// Writes a key of the innermost map; its value must follow. Keys are in the order 0, 1, 2 and so
  /// on, then -1, -2 and so on.
  public mutating func key(_ value: Int64) {
    guard var map = open.popLast() else { preconditionFailure("no map is open") }
    let key = CBORHead.Key(value)
    precondition(map.isMap && !map.lacksValue, "no key is due")
    precondition(map.lastKey.map { $0 < key } ?? true, "keys must ascend")
    map.lastKey = key
    map.lacksValue = true
    map.written += 1
    open.append(map)
    head(key.isNegative ? .negative : .unsigned, key.argument)
  }

  // MARK: - Heads

  private mutating func willWrite() {
    guard !open.isEmpty else {
      precondition(bytes.isEmpty, "one item only")
      return
    }
    let last = open.count - 1
    if open[last].isMap {
      precondition(open[last].lacksValue, "a value without a key")
      open[last].lacksValue = false
    } else {
      open[last].written += 1
    }
  }

  private mutating func begin(_ major: CBORHead.Major, _ count: Int?) {
    willWrite()
    let position = bytes.count
    head(major, UInt64(count ?? 0))
    open.append(
      Container(isMap: major == .map, head: count == nil ? position : nil, count: count ?? 0))
  }

  private mutating func end(_ major: CBORHead.Major) {
    guard let container = open.popLast(), container.isMap == (major == .map) else {
      preconditionFailure("no such container is open")
    }
    precondition(!container.lacksValue, "the last key has no value")
    guard let position = container.head else {
      precondition(container.written == container.count, "the count differs from the declared one")
      return
    }
    var head: [UInt8] = []
    CBORHead.append(major, UInt64(container.written), to: &head)
    bytes.replaceSubrange(position...position, with: head)
  }

  private mutating func head(_ major: CBORHead.Major, _ argument: UInt64) {
    CBORHead.append(major, argument, to: &bytes)
  }
}

/// The initial bytes of an item: major type and argument (RFC 8949, section 3).
enum CBORHead {
  enum Major: UInt8 {
    case unsigned = 0
    case negative, bytes, text, array, map, tag, simple
  }

  static let `false`: UInt8 = 0xF4
  static let `true`: UInt8 = 0xF5
  static let null: UInt8 = 0xF6

  /// Appends a head in its shortest form.
  static func append(_ major: Major, _ argument: UInt64, to bytes: inout [UInt8]) {
    let type = major.rawValue << 5
    if argument < 24 {
      bytes.append(type | UInt8(argument))
      return
    }
    let width =
      argument <= 0xFF ? 1 : argument <= 0xFFFF ? 2 : argument <= 0xFFFF_FFFF ? 4 : 8
    bytes.append(type | UInt8(24 + width.trailingZeroBitCount))
    for index in (0..<width).reversed() {
      bytes.append(UInt8(truncatingIfNeeded: argument >> UInt64(8 * index)))
    }
  }

  /// A map key in the order of its encoded bytes: 0, 1, 2 and so on, then -1, -2 and so on.
  struct Key: Comparable, Sendable {
    let isNegative: Bool
    let argument: UInt64

    init(_ value: Int64) {
      isNegative = value < 0
      argument = UInt64(bitPattern: value < 0 ? ~value : value)
    }

    static func < (left: Key, right: Key) -> Bool {
      left.isNegative == right.isNegative ? left.argument < right.argument : right.isNegative
    }
  }
}
