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
package struct CBORDecoder: Sendable {
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
    var lastKey: CBORKey?
    /// Whether an element or a key's value has been announced and not yet read.
    var owesValue = false
  }

  /// Creates a decoder of bytes, or of a range of them, which must be one item with at most
  /// `depthLimit` levels of arrays and maps.
  package init(_ bytes: [UInt8], range: Range<Int>? = nil, depthLimit: Int = 32) {
    source = bytes
    start = range?.lowerBound ?? 0
    end = range?.upperBound ?? bytes.count
    precondition(start >= 0 && end <= bytes.count, "the range exceeds the bytes")
    position = start
    self.depthLimit = depthLimit
  }

  /// The kind of an item.
  package enum Kind: Sendable, Hashable {
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
  package var offset: Int { position - start }

  /// Returns the kind of the next item without reading it.
  package func kind() throws(CodecError) -> Kind {
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
  package func finish() throws(CodecError) {
    precondition(depth == 0, "an array or map has not been read to its end")
    guard position == end else { throw failure("data follows the item") }
  }

  func failure(
    _ reason: String, _ kind: CodecError.Kind = .malformed, at place: Int? = nil
  ) -> CodecError {
    CodecError(kind, in: .cbor, reason: reason, at: .offset((place ?? position) - start))
  }
}
