/// Parses YAML 1.2 for configuration files: one document of mappings, lists and scalars.
///
/// Refused, with line and column: anchors, aliases, tags, merge keys, tag directives, a second
/// document, keys that are not scalars, and duplicate keys in a mapping. Scalars keep their text;
/// `YAMLNode.Scalar.resolved` returns the value of a plain one.
public enum YAML {
  /// The limits of a document.
  public struct Limits: Sendable {
    /// The maximum number of bytes.
    public var bytes: Int
    /// The maximum nesting of mappings and lists.
    public var depth: Int
    /// The maximum number of nodes, without keys.
    public var nodes: Int

    /// Creates limits: by default 4 MiB, 64 levels and 500,000 nodes.
    public init(bytes: Int = 4 << 20, depth: Int = 64, nodes: Int = 500_000) {
      self.bytes = bytes
      self.depth = depth
      self.nodes = nodes
    }
  }

  /// Parses the only document of a UTF-8 text.
  public static func parse(
    _ text: [UInt8], limits: Limits = Limits()
  ) throws(CodecError) -> YAMLNode {
    guard text.count <= limits.bytes else {
      throw CodecError(.limit, in: .yaml, reason: "it has more than \(limits.bytes) bytes")
    }
    if let invalid = InputText.firstInvalid(text.span) {
      throw CodecError(
        .malformed, in: .yaml, reason: "not valid UTF-8",
        at: .mark(Mark(of: invalid, in: text.span)))
    }
    return try unsafe text.withUnsafeBufferPointer { (bytes) throws(CodecError) in
      var reader = try unsafe Reader(bytes, limits: limits)
      return try reader.document()
    }
  }

  /// Parses the only document of a text.
  public static func parse(
    _ text: String, limits: Limits = Limits()
  ) throws(CodecError) -> YAMLNode {
    try parse(Array(text.utf8), limits: limits)
  }
}

extension YAML {
  /// Builds nodes from the events of libyaml.
  struct Reader: ~Copyable {
    private let events: YAML.Events
    private let limits: YAML.Limits
    private var nodes = 0
    private var depth = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>, limits: YAML.Limits) throws(CodecError) {
      events = try unsafe YAML.Events(bytes)
      self.limits = limits
    }

    /// Reads the only document of the stream.
    mutating func document() throws(CodecError) -> YAMLNode {
      _ = try events.next()
      let start = try events.next()
      switch start.kind {
      case .documentStart(hasTagDirectives: false): break
      case .documentStart: throw refusal("tag directives are not accepted", start)
      default:
        throw CodecError(
          .malformed, in: .yaml, reason: "it contains no document", at: .mark(start.mark))
      }
      let root = try node(try events.next())
      _ = try events.next()
      let end = try events.next()
      guard case .streamEnd = end.kind else { throw refusal("a second document begins here", end) }
      return root
    }

    private mutating func node(_ event: YAML.Events.Event) throws(CodecError) -> YAMLNode {
      nodes += 1
      guard nodes <= limits.nodes else {
        throw CodecError(
          .limit, in: .yaml, reason: "more than \(limits.nodes) nodes", at: .mark(event.mark))
      }
      switch event.kind {
      case .scalar(let scalar): return YAMLNode(.scalar(scalar), at: event.mark)
      case .sequenceStart: return YAMLNode(.sequence(try sequence(event)), at: event.mark)
      case .mappingStart: return YAMLNode(.mapping(try mapping(event)), at: event.mark)
      default:
        throw CodecError(
          .malformed, in: .yaml, reason: "a value is expected", at: .mark(event.mark))
      }
    }

    private mutating func sequence(_ start: YAML.Events.Event) throws(CodecError) -> [YAMLNode] {
      try descend(start)
      var elements: [YAMLNode] = []
      while true {
        let event = try events.next()
        if case .sequenceEnd = event.kind { break }
        elements.append(try node(event))
      }
      depth -= 1
      return elements
    }

    private mutating func mapping(_ start: YAML.Events.Event) throws(CodecError) -> [YAMLNode.Entry]
    {
      try descend(start)
      var entries: [YAMLNode.Entry] = []
      var names = InputText.NameSet()
      while true {
        let event = try events.next()
        if case .mappingEnd = event.kind { break }
        let key = try key(event, &names)
        let value = try node(try events.next())
        entries.append(YAMLNode.Entry(key: key, keyMark: event.mark, value: value))
      }
      depth -= 1
      return entries
    }

    private func key(
      _ event: YAML.Events.Event, _ names: inout InputText.NameSet
    ) throws(CodecError) -> YAMLNode.Scalar {
      guard case .scalar(let key) = event.kind else {
        throw refusal("a key must be a scalar", event)
      }
      if key.style == .plain, key.text == "<<" {
        throw refusal("merge keys are not accepted", event)
      }
      guard names.insert(key.text) else {
        throw CodecError(
          .malformed, in: .yaml, reason: "duplicate key '\(InputText.printable(key.text))'",
          at: .mark(event.mark))
      }
      return key
    }

    private mutating func descend(_ event: YAML.Events.Event) throws(CodecError) {
      depth += 1
      guard depth <= limits.depth else {
        throw CodecError(
          .limit, in: .yaml, reason: "more than \(limits.depth) levels deep", at: .mark(event.mark))
      }
    }

    private func refusal(_ reason: String, _ event: YAML.Events.Event) -> CodecError {
      CodecError(.unsupported, in: .yaml, reason: reason, at: .mark(event.mark))
    }
  }
}
