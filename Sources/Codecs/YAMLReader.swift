/// Builds nodes from the events of libyaml.
struct YAMLReader: ~Copyable {
  private let events: YAMLEvents
  private let limits: YAML.Limits
  private var nodes = 0
  private var depth = 0

  init(_ bytes: UnsafeBufferPointer<UInt8>, limits: YAML.Limits) throws(CodecError) {
    events = try unsafe YAMLEvents(bytes)
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

  private mutating func node(_ event: YAMLEvents.Event) throws(CodecError) -> YAMLNode {
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
      throw CodecError(.malformed, in: .yaml, reason: "a value is expected", at: .mark(event.mark))
    }
  }

  private mutating func sequence(_ start: YAMLEvents.Event) throws(CodecError) -> [YAMLNode] {
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

  private mutating func mapping(_ start: YAMLEvents.Event) throws(CodecError) -> [YAMLNode.Entry] {
    try descend(start)
    var entries: [YAMLNode.Entry] = []
    var names = NameSet()
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
    _ event: YAMLEvents.Event, _ names: inout NameSet
  ) throws(CodecError) -> YAMLNode.Scalar {
    guard case .scalar(let key) = event.kind else {
      throw refusal("a key must be a scalar", event)
    }
    if key.style == .plain, key.text == "<<" { throw refusal("merge keys are not accepted", event) }
    guard names.insert(key.text) else {
      throw CodecError(
        .malformed, in: .yaml, reason: "duplicate key '\(Printable.text(key.text))'",
        at: .mark(event.mark))
    }
    return key
  }

  private mutating func descend(_ event: YAMLEvents.Event) throws(CodecError) {
    depth += 1
    guard depth <= limits.depth else {
      throw CodecError(
        .limit, in: .yaml, reason: "more than \(limits.depth) levels deep", at: .mark(event.mark))
    }
  }

  private func refusal(_ reason: String, _ event: YAMLEvents.Event) -> CodecError {
    CodecError(.unsupported, in: .yaml, reason: reason, at: .mark(event.mark))
  }
}
