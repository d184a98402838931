/// Reads YAML 1.2 for settings that people write: one document of mappings, lists and scalars.
///
/// Refused, with line and column: anchors, aliases, tags, merge keys, directives for tags, a second
/// document, a key that is no scalar, a key that comes twice in a mapping.
/// Scalars keep their text; `YAMLNode.Scalar.resolved` says what a plain one means.
public enum YAML {
  /// What a document may be at most.
  public struct Limits: Sendable {
    /// Bytes of the whole text.
    public var bytes: Int
    /// How deeply mappings and lists may lie in one another.
    public var depth: Int
    /// Nodes in all, keys not counted.
    public var nodes: Int

    /// Makes limits; 4 MiB, 64 levels and 500,000 nodes unless others are given.
    public init(bytes: Int = 4 << 20, depth: Int = 64, nodes: Int = 500_000) {
      self.bytes = bytes
      self.depth = depth
      self.nodes = nodes
    }
  }

  /// Reads the one document of a text in UTF-8.
  public static func parse(
    _ text: [UInt8], limits: Limits = Limits()
  ) throws(CodecError) -> YAMLNode {
    guard text.count <= limits.bytes else {
      throw CodecError(.limit, .yaml, "it has more than \(limits.bytes) bytes")
    }
    if let invalid = UTF8Check.firstInvalid(text.span) {
      throw CodecError(
        .malformed, .yaml, "not valid UTF-8", at: .mark(Mark(of: invalid, in: text.span)))
    }
    return try unsafe text.withUnsafeBufferPointer { (bytes) throws(CodecError) in
      var reader = try unsafe YAMLReader(bytes, limits: limits)
      return try reader.document()
    }
  }

  /// Reads the one document of a text.
  public static func parse(
    _ text: String, limits: Limits = Limits()
  ) throws(CodecError) -> YAMLNode {
    try parse(Array(text.utf8), limits: limits)
  }
}
