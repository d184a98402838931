/// Parses YAML 1.2 for configuration files: one document of mappings, lists and scalars.
///
/// Refused, with line and column: anchors, aliases, tags, merge keys, tag directives, a second
/// document, keys that are not scalars, and duplicate keys in a mapping. Scalars keep their text;
/// `YAMLNode.Scalar.resolved` returns the value of a plain one.
package enum YAML {
  /// The limits of a document.
  package struct Limits: Sendable {
    /// The maximum number of bytes.
    package var bytes: Int
    /// The maximum nesting of mappings and lists.
    package var depth: Int
    /// The maximum number of nodes, without keys.
    package var nodes: Int

    /// Creates limits: by default 4 MiB, 64 levels and 500,000 nodes.
    package init(bytes: Int = 4 << 20, depth: Int = 64, nodes: Int = 500_000) {
      self.bytes = bytes
      self.depth = depth
      self.nodes = nodes
    }
  }

  /// Parses the only document of a UTF-8 text.
  package static func parse(
    _ text: [UInt8], limits: Limits = Limits()
  ) throws(CodecError) -> YAMLNode {
    guard text.count <= limits.bytes else {
      throw CodecError(.limit, in: .yaml, reason: "it has more than \(limits.bytes) bytes")
    }
    if let invalid = UTF8Check.firstInvalid(text.span) {
      throw CodecError(
        .malformed, in: .yaml, reason: "not valid UTF-8",
        at: .mark(Mark(of: invalid, in: text.span)))
    }
    return try unsafe text.withUnsafeBufferPointer { (bytes) throws(CodecError) in
      var reader = try unsafe YAMLReader(bytes, limits: limits)
      return try reader.document()
    }
  }

  /// Parses the only document of a text.
  package static func parse(
    _ text: String, limits: Limits = Limits()
  ) throws(CodecError) -> YAMLNode {
    try parse(Array(text.utf8), limits: limits)
  }
}
