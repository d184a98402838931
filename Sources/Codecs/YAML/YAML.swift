internal import CYAML

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

extension YAML {
  /// The events of libyaml as Swift values. Anchors, aliases and tags are errors.
  @safe final class Events {
    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let text: UnsafeBufferPointer<UInt8>

    /// Starts parsing. The bytes must outlive this object.
    init(_ bytes: UnsafeBufferPointer<UInt8>) throws(CodecError) {
      let parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
      guard unsafe yaml_parser_initialize(parser) == 1 else {
        unsafe parser.deallocate()
        throw CodecError(.library, in: .yaml, reason: "not enough memory for the parser")
      }
      unsafe yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
      // libyaml counts a byte order mark as a column: the next line then seems to be indented less.
      let hasMark = unsafe bytes.starts(with: [0xef, 0xbb, 0xbf])
      let text = unsafe hasMark ? UnsafeBufferPointer(rebasing: bytes.dropFirst(3)) : bytes
      unsafe yaml_parser_set_input_string(parser, text.baseAddress, text.count)
      unsafe self.parser = parser
      unsafe self.text = text
    }

    deinit {
      unsafe yaml_parser_delete(parser)
      unsafe parser.deallocate()
    }

    /// An event and its position.
    struct Event {
      let kind: Kind
      let mark: Mark
    }

    enum Kind {
      case streamStart
      case streamEnd
      case documentStart(hasTagDirectives: Bool)
      case documentEnd
      case scalar(YAMLNode.Scalar)
      case sequenceStart
      case sequenceEnd
      case mappingStart
      case mappingEnd
    }

    /// Returns the next event. Must not be called after the end of the stream.
    func next() throws(CodecError) -> Event {
      var event = unsafe yaml_event_t()
      guard unsafe yaml_parser_parse(parser, &event) == 1 else { throw failure() }
      defer { unsafe yaml_event_delete(&event) }
      let mark = unsafe Self.mark(event.start_mark)
      return Event(kind: try unsafe Self.kind(event, mark), mark: mark)
    }

    private static func kind(_ event: yaml_event_t, _ mark: Mark) throws(CodecError) -> Kind {
      switch unsafe event.type {
      case YAML_STREAM_START_EVENT: return .streamStart
      case YAML_STREAM_END_EVENT: return .streamEnd
      case YAML_DOCUMENT_START_EVENT:
        let directives = unsafe event.data.document_start.tag_directives
        return unsafe .documentStart(hasTagDirectives: directives.start != directives.end)
      case YAML_DOCUMENT_END_EVENT: return .documentEnd
      case YAML_SCALAR_EVENT:
        let scalar = unsafe event.data.scalar
        try unsafe refuse(anchor: scalar.anchor, tag: scalar.tag, mark)
        return unsafe .scalar(Self.scalar(scalar.value, length: scalar.length, style: scalar.style))
      case YAML_SEQUENCE_START_EVENT:
        let start = unsafe event.data.sequence_start
        try unsafe refuse(anchor: start.anchor, tag: start.tag, mark)
        return .sequenceStart
      case YAML_SEQUENCE_END_EVENT: return .sequenceEnd
      case YAML_MAPPING_START_EVENT:
        let start = unsafe event.data.mapping_start
        try unsafe refuse(anchor: start.anchor, tag: start.tag, mark)
        return .mappingStart
      case YAML_MAPPING_END_EVENT: return .mappingEnd
      default:
        throw CodecError(
          .unsupported, in: .yaml, reason: "aliases are not accepted", at: .mark(mark))
      }
    }

    private static func refuse(
      anchor: UnsafeMutablePointer<UInt8>?, tag: UnsafeMutablePointer<UInt8>?, _ mark: Mark
    ) throws(CodecError) {
      if unsafe anchor != nil {
        throw CodecError(
          .unsupported, in: .yaml, reason: "anchors are not accepted", at: .mark(mark))
      }
      if unsafe tag != nil {
        throw CodecError(.unsupported, in: .yaml, reason: "tags are not accepted", at: .mark(mark))
      }
    }

    private static func scalar(
      _ value: UnsafeMutablePointer<UInt8>?, length: Int, style: yaml_scalar_style_t
    ) -> YAMLNode.Scalar {
      let bytes = unsafe UnsafeBufferPointer(start: value, count: length)
      let text = unsafe String(decoding: bytes, as: UTF8.self)
      return switch style {
      case YAML_PLAIN_SCALAR_STYLE: YAMLNode.Scalar(text, style: .plain)
      case YAML_LITERAL_SCALAR_STYLE, YAML_FOLDED_SCALAR_STYLE: YAMLNode.Scalar(text, style: .block)
      default: YAMLNode.Scalar(text, style: .quoted)
      }
    }

    private static func mark(_ mark: yaml_mark_t) -> Mark {
      Mark(line: mark.line + 1, column: mark.column + 1)
    }

    /// Returns the error of libyaml. Its reader reports only an offset, and fails at a character
    /// that YAML does not allow; its scanner and parser report a position.
    private func failure() -> CodecError {
      switch unsafe parser.pointee.error {
      case YAML_MEMORY_ERROR: return CodecError(.library, in: .yaml, reason: "not enough memory")
      case YAML_READER_ERROR:
        let mark = unsafe Mark(of: parser.pointee.problem_offset, in: text.span)
        return CodecError(
          .malformed, in: .yaml, reason: "a character that YAML does not allow", at: .mark(mark))
      default:
        let mark = unsafe Self.mark(parser.pointee.problem_mark)
        return CodecError(.malformed, in: .yaml, reason: reason(besides: mark), at: .mark(mark))
      }
    }

    private func reason(besides mark: Mark) -> String {
      let problem = unsafe parser.pointee.problem.map { unsafe String(cString: $0) } ?? "not YAML"
      guard let context = unsafe parser.pointee.context else { return problem }
      let begin = unsafe Self.mark(parser.pointee.context_mark)
      let origin = begin == mark ? "" : " that begins at \(begin)"
      return unsafe "\(problem), \(String(cString: context))\(origin)"
    }
  }
}
